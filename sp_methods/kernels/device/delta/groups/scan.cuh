// SPDX-License-Identifier: Apache-2.0
// The scan over the maps of a head's segments under a delta rule: the states at the edges of the
// segments, and the map of all of them. One block a head and 64 rows of the state.
//
//   forward:   X <- X M_j + B_j      from the incoming state, or from the identity without B
//   backward:  D <- D M_j^T + B_j    from the last segment to the first
//
// X and M are sums of two bf16 each, high and low; three products of them leave 2^-16 of the
// result.
// Cost: segments 6 d_k^2 flop a row on the matrix units; the maps are read once for 64 rows.
#pragma once

#include "sp_methods/kernels/device/gla/layer.cuh"

namespace baton {

/// The operands of a scan. Results that are null are not made.
struct SegmentScan {
  const char* matrices = nullptr;   ///< M as segment_maps leaves it.
  const float* added = nullptr;     ///< B [heads, segments, d_v, d_k]
  const float* incoming = nullptr;  ///< [heads, d_v, d_k]; null means zero.
  float* edges = nullptr;           ///< The state that comes to each segment, as B.
  float* last = nullptr;            ///< The state behind all segments [heads, d_v, d_k].
  float* matrix_edges = nullptr;    ///< `edges` from the identity [heads, segments, d_k, d_k].
  float* map_matrix = nullptr;      ///< The matrix A of all segments [heads, d_k, d_k].
  bool backward = false;
};
cudaError_t scan_segment_maps(cudaStream_t stream, const SegmentScan& x, const Segments& cut);

}  // namespace baton
