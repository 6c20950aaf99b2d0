// SPDX-License-Identifier: Apache-2.0
// Plans of cuDNN and their memory, made once for each block that a schedule has, outside rounds.
#pragma once

#include <memory>
#include <vector>

#include "sp_methods/kernels/device/cudnn/attention_plan.cuh"
#include "sp_methods/kernels/softmax.hpp"
#include "sp_methods/kernels/softmax_runs.hpp"

namespace baton {

/// One run of a block's mask with its plan, and the offsets of its operands in memory that all
/// calls of a process share.
struct PlannedRun {
  MaskRun run;
  std::shared_ptr<const AttentionPlan> plan;
  /// Offsets in bytes: bf16 rows of o, f32 stats, bf16 parts of the gradients, cuDNN's workspace.
  std::size_t o = 0, stats = 0, dq = 0, dk = 0, dv = 0, workspace = 0;

  template <class Element>
  static Element* at(std::size_t offset) {
    return reinterpret_cast<Element*>(shared_memory() + offset);
  }

 private:
  static std::byte* shared_memory();
};

/// The runs of a block, planned once. Throws SystemError if cuDNN has no plan, and std::logic_error
/// if plans are missing while `stream` is captured.
const std::vector<PlannedRun>& planned_runs(cudaStream_t stream, const SoftmaxShape& shape, bool backward);

/// The reason why cuDNN cannot run a block of these sizes. If it is empty, the plans and their
/// memory are ready.
Refusal refused_by_cudnn(const SoftmaxShape& shape);
/// The reason why cuDNN cannot run a block's gradients. If it is empty, the plans and their memory
/// are ready.
Refusal gradients_refused_by_cudnn(const SoftmaxGradientsShape& shape);

}  // namespace baton
