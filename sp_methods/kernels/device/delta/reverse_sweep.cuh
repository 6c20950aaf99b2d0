// SPDX-License-Identifier: Apache-2.0
// The gradient of the state over the chunks of one head under a delta rule or a low-rank rule,
// right to left, from the chunks' records: one block a head and 16 or 32 rows of the gradient
// [d_v, d_k].
//
//   for each chunk, from the last:   D' = bf16(from D)                                   | copies
//     dVn^T = D' k"^T + dO^T A                  Y^T = -beta dVn^T     half of the warps
//     D <- gamma D + to (dO^T q' + Y^T W)       all warps
//
// The gradient of the writes needs no state, so this is the part of a rank that can start before
// one comes. Two barriers a chunk.
// Cost: 6 tokens d_k flop a row and head; see sweep.cuh for bytes.
#pragma once

#include "sp_methods/kernels/device/delta/layer.cuh"

namespace baton {

/// Operands of a sweep from right to left. Null results are not written, and a null `after` is
/// zero.
struct ReverseSweepOperands {
  const Bf16* d_o = nullptr;     ///< [tokens, heads, d_v]
  const float* after = nullptr;  ///< [heads, d_v, d_k]
  float* map_state = nullptr;    ///< [heads, d_v, d_k]: the gradient before the first token.
  /// Behind every chunk [heads, chunks, d_v, d_k]; of a low-rank rule times `from`.
  Bf16* gradients = nullptr;
  char* d_written = nullptr;  ///< [heads, chunks] tiles [d_v, 64]: of Vn^T.
};
cudaError_t reverse_sweep(cudaStream_t stream, const ReverseSweepOperands& x, char* records, const Chunks& p,
                          ChunkRule rule = ChunkRule::delta);

}  // namespace baton
