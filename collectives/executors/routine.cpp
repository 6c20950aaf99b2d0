// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/routine.hpp"

namespace baton {

// In a source, so that all libraries of a process share it.
Registry<MakeRoutine>& routines() {
  static Registry<MakeRoutine> all("native in Python");
  return all;
}

std::function<double()>& empty_call_seconds() {
  static std::function<double()> measure;
  return measure;
}

bool has_routine(const Schedule& schedule) {
  return schedule.steps().size() == 1 && schedule.natives().size() == 1 &&
         routines().find(schedule.natives()[0].name) != nullptr;
}

RoutineCall routine_call(const Schedule& schedule, const std::function<void*(const Slice&)>& memory) {
  const NativeCall& native = schedule.natives()[0];
  const Step& step = schedule.steps()[0];
  const int home = schedule.home_rank(), ranks = schedule.ranks();
  RoutineCall call{.rank = native.reversed ? ranks - 1 - home : home,
                   .ranks = ranks,
                   .reversed = native.reversed,
                   .row = native.row,
                   .form = native.form};
  auto shape = native.shapes.begin();
  const auto operand = [&](const Slice& slice) {
    const std::vector<std::int64_t> sizes = native.shapes.empty() ? std::vector{slice.count} : *shape++;
    return RoutineOperand{schedule.buffers()[slice.buffer].name, sizes, slice.dtype, memory(slice)};
  };
  for (const Slice& slice : step.writes) call.writes.push_back(operand(slice));
  for (const Slice& slice : step.reads) call.reads.push_back(operand(slice));
  return call;
}

}  // namespace baton
