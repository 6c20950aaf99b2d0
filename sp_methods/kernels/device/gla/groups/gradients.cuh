// SPDX-License-Identifier: Apache-2.0
// All gradients of one segment, its chunks from right to left from the true state gradient D behind
// it: one block a head and segment.
//
//   one group of warps copies, scales and walks (gradient_scaler.cuh); two groups multiply. For
//   each chunk, with the scaled q, k, and S the state before it:
//     D' = from (.) D                     A = tril(q k^T)              dA = tril(do v^T)
//     dv = A^T do + k D'                  D <- to (.) (D' + q^T do)
//     X  = dA k + to (.) (do S^T)         Y = dA^T q + v D'^T
//     dq = f (.) X     dk = s / f (.) Y     T = q X - k Y
//   with to = e^r, from = e^{all - r}, f = s e^{b - r}; S = the chunk's own + its decay (.) the
//   state before the segment.
//
// The first group makes X, the second Y; each half of D and of dv. A and dA pass from sums to
// operands in registers.
// Cost: tokens (12 d_k d_v + 256 (d_k + d_v) + ..) flop a head; q, k, v, g, d_o, S read and dq, dk,
// dv, dg written once.
#pragma once

#include "sp_methods/kernels/device/gla/layer.cuh"

namespace baton {

/// The device body of segment_gradients on warp groups, for layers without a gate a head. A sum
/// over channels for each token would take one group longer than the sixteen warps of the other
/// kernel: 0.465 ms instead of 0.405 ms.
cudaError_t segment_gradients_by_groups(cudaStream_t stream, const SegmentGradients::Operands<OnDevice>& x,
                                        const Segments& cut);

}  // namespace baton
