// SPDX-License-Identifier: Apache-2.0
// Softmax blocks by cuDNN: the bodies of two contracts.
#pragma once

#include "sp_methods/kernels/device/tile/tile.cuh"
#include "sp_methods/kernels/softmax.hpp"

namespace baton {

/// The bodies of softmax_block and softmax_block_gradients. They make plans that
/// are not ready, but not while a stream is captured.
cudaError_t cudnn_softmax_block(cudaStream_t stream, const SoftmaxBlock::Operands<OnDevice>& x,
                                const SoftmaxShape& shape);
cudaError_t cudnn_softmax_block_gradients(cudaStream_t stream,
                                          const SoftmaxBlockGradients::Operands<OnDevice>& x,
                                          const SoftmaxGradientsShape& shape);

}  // namespace baton
