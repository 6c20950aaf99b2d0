// SPDX-License-Identifier: Apache-2.0
// The output of one segment, its chunks in order from the true state before it: one block a head
// and segment.
//
//   one group of warps copies and scales chunks ahead (chunk_scaler.cuh); a group of warps for
//   every
//   64 columns of v multiplies, all turned, so that the state stays in registers:
//     S^T <- S^T (.) carry (.) to      A = tril(q k^T), by groups half each
//     o^T  = S^T q^T + v^T A^T         S^T <- S^T (.) through + v^T k     through: strong chunks
//     alone
//
// o is turned back in the room of v. Two barriers a chunk, one of them for A.
// Cost: 4 tokens d_v (d_k + 64) flop a head; q, k, v, g read and o written once.
#pragma once

#include "sp_methods/kernels/device/gla/layer.cuh"

namespace baton {

/// The device body of segment_output on warp groups.
cudaError_t segment_output_by_groups(cudaStream_t stream, const SegmentOutput::Operands<OnDevice>& x,
                                     const Segments& cut);

}  // namespace baton
