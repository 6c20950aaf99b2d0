// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <sstream>
#include <utility>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/nccl_library.cuh"
#include "collectives/executors/nccl/plan.hpp"
#include "collectives/executors/nccl/round.cuh"
#include "collectives/schedule/check.hpp"

namespace baton {

Registry<NcclNative>& nccl_natives() {
  static Registry<NcclNative> all("NCCL native");
  return all;
}

NcclRound::NcclRound(Schedule schedule, const std::vector<int>& groups, const DeviceMemory& memory,
                     ncclComm_t comm)
    : Round(schedule, nccl_plan(schedule, groups)), comm_(comm) {
  for (const Step& step : schedule.steps()) operands_.push_back(memory.operands(step));
}

void NcclRound::enqueue_operation(std::size_t operation, cudaStream_t stream) const {
  const std::vector<int>& all = operations()[operation].steps;
  const Step& step = schedule().steps()[all[0]];
  if (step.is_message()) return enqueue_messages(all, stream);
  if (step.verb == Verb::native) return enqueue_native(all[0], stream);
  run_on_device(stream, schedule(), step, operands_[all[0]]);
}

void NcclRound::enqueue_messages(const std::vector<int>& group, cudaStream_t stream) const {
  nccl(ncclGroupStart());
  for (int index : group) {
    const Step& step = schedule().steps()[index];
    if (step.verb == Verb::send) {
      const auto bytes = static_cast<std::size_t>(step.reads[0].bytes());
      nccl(ncclSend(operands_[index].reads[0].data(), bytes, ncclChar, step.peer, comm_, stream));
    } else {
      const auto bytes = static_cast<std::size_t>(step.writes[0].bytes());
      nccl(ncclRecv(operands_[index].writes[0].data(), bytes, ncclChar, step.peer, comm_, stream));
    }
  }
  nccl(ncclGroupEnd());
}

void NcclRound::enqueue_native(int index, cudaStream_t stream) const {
  const NativeCall& native = schedule().natives()[schedule().steps()[index].body];
  const int home = schedule().home_rank(), ranks = schedule().ranks();
  nccl_natives()
      .at(native.name)
      .body({.comm = comm_,
             .stream = stream,
             .place = native.reversed ? ranks - 1 - home : home,
             .ranks = ranks,
             .reversed = native.reversed,
             .blocks = native.blocks,
             .operands = operands_[index]});
}

std::string NcclRound::endless_wait_for(int rank) const {
  const auto& steps = schedule().steps();
  const auto found = std::find_if(steps.begin(), steps.end(), [rank](const Step& step) {
    return step.is_message() && step.peer == rank;
  });
  if (found == steps.end()) return {};
  const Slice& slice = found->verb == Verb::send ? found->reads[0] : found->writes[0];
  std::ostringstream text;
  text << step_name(*found, static_cast<int>(found - steps.begin())) << ", elements " << slice.offset
       << " to " << slice.end() << " of '" << schedule().buffers()[slice.buffer].name << "'";
  return text.str();
}

}  // namespace baton
