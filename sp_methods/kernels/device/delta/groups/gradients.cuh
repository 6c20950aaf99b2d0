// SPDX-License-Identifier: Apache-2.0
// All gradients of chunks under a delta rule (delta/gradients.cuh): on warp groups, but for a gate
// a channel.
#pragma once

#include "sp_methods/kernels/device/delta/gradients.cuh"

namespace baton {

/// Writes all gradients of the call's heads. The members before and after of `x` are not read.
cudaError_t delta_gradients_of_chunks(cudaStream_t stream, const DeltaGradients::Operands<OnDevice>& x,
                                      const SweptChunks& kept, const Chunks& p);

}  // namespace baton
