// SPDX-License-Identifier: Apache-2.0
// The sweeps of the delta rule over the chunks of one segment, one block a head and segment; a
// group of warps for every 64 rows of the state multiplies (turned.cuh), one more feeds them.
//
//   segment_maps        k v N~ -> B from zero, M from the identity: the segment maps X to X M + B
//   forward_segments    q k v N~ and X before the segment -> o; or X before every chunk and R
//   reverse_segments    q k d_o N~ and D behind the segment -> D before it; or D behind every
//                       chunk and Z
//
//   backward, with D [rows, d_k] the gradient of X:
//     dVn^T = (D k^T) e^{all-b} + d_o^T A       Z^T = dVn^T + (B dVn)^T N~
//     D <- e^all D + (s e^b d_o)^T q - (e^b B Z)^T k
//
// Maps are f32; M is kept as the sum of two bf16, as scan.cu multiplies it.
// Cost: tokens flop a head: maps 4 d_k (d_k + d_v), forward 6 d_k d_v, reverse 6 d_k d_v, and what
// stays within chunks; each tensor is read once.
#pragma once

#include "sp_methods/kernels/device/delta/groups/chunk_slots.cuh"

namespace baton {

/// What segments make of states: X M + B.
struct SegmentMapsOut {
  float* added = nullptr;    ///< B [heads, segments, d_v, d_k]; not written if null.
  char* matrices = nullptr;  ///< M [heads, segments] of two tiles [d_k, d_k], high and low.
};
cudaError_t segment_maps(cudaStream_t stream, const SegmentMapsOut& out, const ChunkTensors& x,
                         const Segments& cut);

/// The results of the sweep from left to right.
struct ForwardResults {
  Bf16* o = nullptr;           ///< [tokens, heads, d_v]
  Bf16* correction = nullptr;  ///< [tokens, heads, d_k], in place of o: the rows start without values.
  Bf16* states = nullptr;      ///< [heads of the call, chunks, d_v, d_k], in place of o.
  Bf16* missing = nullptr;     ///< R [tokens, heads, d_v], with `states`.
};
/// Sweeps from the states `before` [heads, segments, rows, d_k], or zero if null.
cudaError_t forward_segments(cudaStream_t stream, const ForwardResults& out, const ChunkTensors& x,
                             const float* before, const Segments& cut);

/// The results of the sweep from right to left.
struct ReverseResults {
  float* first = nullptr;     ///< [heads, segments, d_v, d_k]: gradient before the segment.
  Bf16* gradients = nullptr;  ///< [heads of the call, chunks, d_v, d_k], in place of `first`.
  Bf16* z = nullptr;          ///< Z [tokens, heads, d_v], with `gradients`.
};
/// Sweeps from the gradients `behind` [heads, segments, d_v, d_k], or zero if null. The values of x
/// are d_o.
cudaError_t reverse_segments(cudaStream_t stream, const ReverseResults& out, const ChunkTensors& x,
                             const float* behind, const Segments& cut);

}  // namespace baton
