// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/routine.hpp"

namespace baton {

RoutineTurns::RoutineTurns(const Schedule& schedule, const std::function<void*(const Slice&)>& memory,
                           RoutineMessages* messages) {
  if (schedule.natives().empty()) return;
  const NativeCall& native = schedule.natives()[0];
  const Step& step = schedule.steps()[0];
  const int home = schedule.home_rank(), ranks = schedule.ranks();
  RoutineCall call{.rank = native.reversed ? ranks - 1 - home : home,
                   .ranks = ranks,
                   .reversed = native.reversed,
                   .row = native.row,
                   .form = native.form,
                   .messages = messages};
  auto shape = native.shapes.begin();
  const auto operand = [&](const Slice& slice) {
    const std::vector<std::int64_t> sizes = native.shapes.empty() ? std::vector{slice.count} : *shape++;
    return RoutineOperand{schedule.buffers()[slice.buffer].name, sizes, slice.dtype, memory(slice)};
  };
  for (const Slice& slice : step.writes) call.writes.push_back(operand(slice));
  for (const Slice& slice : step.reads) call.reads.push_back(operand(slice));
  routine_ = routines().at(native.name)(call);
}

}  // namespace baton
