// SPDX-License-Identifier: Apache-2.0
// Softmax blocks by cuDNN: the bodies of two contracts.
#pragma once

#include "sp_methods/kernels/device/tile/tile.cuh"
#include "sp_methods/kernels/softmax.hpp"

namespace baton {

/// The body of softmax_block by cuDNN. It makes missing plans, except in a captured stream, where
/// it throws std::logic_error.
cudaError_t cudnn_softmax_block(cudaStream_t stream, const SoftmaxBlock::Operands<OnDevice>& x,
                                const SoftmaxShape& shape);
/// The body of softmax_block_gradients by cuDNN. It makes missing plans, except in a captured
/// stream, where it throws std::logic_error.
cudaError_t cudnn_softmax_block_gradients(cudaStream_t stream,
                                          const SoftmaxBlockGradients::Operands<OnDevice>& x,
                                          const SoftmaxGradientsShape& shape);

}  // namespace baton
