// SPDX-License-Identifier: Apache-2.0
// Softmax blocks by cuDNN: the bodies of two contracts, and what they keep from call to call, plans
// and their memory.
#pragma once

#include <memory>
#include <vector>

#include "sp_methods/kernels/device/cudnn/attention_plan.cuh"
#include "sp_methods/kernels/device/tile/tile.cuh"
#include "sp_methods/kernels/softmax.hpp"
#include "sp_methods/kernels/softmax_runs.hpp"

namespace baton {

/// One run of a block's mask: its plan, and where its operands lie in memory that all calls of a
/// process share, one after the other in a stream.
struct PlannedRun {
  MaskRun run;
  std::shared_ptr<const AttentionPlan> plan;
  /// Bytes from the start: bf16 rows of o, f32 stats, shares of the gradients, cuDNN's own memory.
  std::size_t o = 0, stats = 0, dq = 0, dk = 0, dv = 0, workspace = 0;

  template <class Element>
  static Element* at(std::size_t offset) {
    return reinterpret_cast<Element*>(shared_memory() + offset);
  }

 private:
  static std::byte* shared_memory();
};

/// The runs of a block, planned once. Throws SystemError if cuDNN has no plan, and std::logic_error
/// where `stream` is captured and they are not ready.
const std::vector<PlannedRun>& planned_runs(cudaStream_t stream, const SoftmaxShape& shape, bool backward);

/// The reason why cuDNN cannot run a block of these sizes; empty if it can, and then its plans and
/// their memory are ready.
Refusal refused_by_cudnn(const SoftmaxShape& shape);
Refusal gradients_refused_by_cudnn(const SoftmaxGradientsShape& shape);

/// The bodies of softmax_block and softmax_block_gradients. They make plans that
/// are not ready, but not while a stream is captured.
cudaError_t cudnn_softmax_block(cudaStream_t stream, const SoftmaxBlock::Operands<OnDevice>& x,
                                const SoftmaxShape& shape);
cudaError_t cudnn_softmax_block_gradients(cudaStream_t stream,
                                          const SoftmaxBlockGradients::Operands<OnDevice>& x,
                                          const SoftmaxGradientsShape& shape);

}  // namespace baton
