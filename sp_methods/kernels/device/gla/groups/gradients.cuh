// SPDX-License-Identifier: Apache-2.0
// All gradients of one segment, its chunks from right to left from the true state gradient D behind
// it: one block a head and segment.
//
//   one group of warps copies and scales chunks ahead (gradient_scaler.cuh); a group of warps for
//   every 64 channels of k multiplies. For each chunk, with the scaled q, k, and S before it:
//     D' = from (.) D                         A = tril(q k^T)      dA = tril(d_o v^T)
//     X^T = to (.) (S d_o^T) + k^T dA^T       Y^T = D' v^T + q^T dA
//     dv  = A^T d_o + k D'                    D <- to (.) (D' + q^T d_o)
//     dq = f (.) X     dk = s / f (.) Y       dg_i = R + sum over u >= i of q_u X_u - k_u Y_u
//   with to = e^r, from = e^{all - r}, f = s e^{b - r}, and S, R as in state_operand.cuh.
//
// X and Y are turned, so that a group has all of a channel: D stays in registers, S comes there
// from memory, and no group waits for what another has of q X or k Y.
// Cost: tokens (12 d_k d_v + 256 (d_k + d_v) + ..) flop a head; q, k, v, g, d_o, S read and dq, dk,
// dv, dg written once.
#pragma once

#include "sp_methods/kernels/device/gla/layer.cuh"

namespace baton {

/// The device body of segment_gradients on warp groups. With gates it leaves segments that have a
/// strong chunk or end in a short one to the kernel of sixteen warps.
cudaError_t segment_gradients_by_groups(cudaStream_t stream, const SegmentGradients::Operands<OnDevice>& x,
                                        const Segments& cut);

/// The mark of a segment that is left to the kernel of sixteen warps, a NaN that no conversion to
/// bf16 makes. It stands in the first element of the segment's dg.
inline constexpr unsigned short left_to_sixteen_warps = 0xfffe;

/// The place of the mark of this block's segment; dg is [tokens, heads, width].
__device__ inline volatile unsigned short& mark_of_segment(const DeviceLayer& layer, Bf16* dg, int width) {
  const auto rows = layer.rows(dg, width, layer.first_chunk(DeviceLayer::segment()));
  return *reinterpret_cast<unsigned short*>(rows.first);
}

/// Marks this block's segment.
__device__ inline void leave_to_sixteen_warps(const DeviceLayer& layer, Bf16* dg, int width) {
  if (threadIdx.x == 0) mark_of_segment(layer, dg, width) = left_to_sixteen_warps;
}

}  // namespace baton
