// SPDX-License-Identifier: Apache-2.0
// The state over the chunks of one head under a delta rule or a low-rank rule, left to right, from
// the chunks' records: one block a head and 16 or 32 rows of the state [rows, d_k].
//
//   rows of values start from the incoming state or zero, rows of the matrix from the identity,
//   without values (U = 0)
//
//   for each chunk:   X' = bf16(to X)                                                    | copies
//     R^T = U^T - X' W^T     Vn^T = beta R^T         half of the warps  | the others: O = q' X'^T
//     X <- gamma X + from (Vn^T k")                  all warps          | O += A Vn, written
//
// A low-rank rule adds what values write: X <- .. + from (V^T keys), O += value_pairs V.
// Two barriers a chunk. With values X at the end is B, from the identity it is A transposed.
// Cost: 4 tokens d_k flop a row and head, with the output 6; see sweep.cuh for bytes.
#pragma once

#include "sp_methods/kernels/device/delta/layer.cuh"

namespace baton {

/// Results of a sweep over the chunks of every head; null ones are not written.
struct ForwardSweepOutputs {
  float* map_state = nullptr;   ///< [heads, d_v, d_k]
  float* map_matrix = nullptr;  ///< [heads, d_k, d_k]
  Bf16* o = nullptr;            ///< [tokens, heads, d_v]
  Bf16* correction = nullptr;   ///< [tokens, heads, d_k]
  Bf16* states = nullptr;       ///< [heads, chunks, d_v, d_k]; of a low-rank rule times `to`.
  char* missing = nullptr;      ///< [heads, chunks] tiles [d_v, 64]
};
/// Sweeps from the state `incoming` [heads, d_v, d_k], or zero if null, over the records of all
/// chunks.
cudaError_t forward_sweep(cudaStream_t stream, const ForwardSweepOutputs& out, char* records,
                          const float* incoming, const Chunks& p, ChunkRule rule = ChunkRule::delta);

}  // namespace baton
