// SPDX-License-Identifier: Apache-2.0
// The base of executors that run all ranks in one process, step by step.
//
//   prepare: put the steps of all ranks in one order in which each can run when its turn comes
//   run:     run them in that order; a send and its receive are one copy
#pragma once

#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "collectives/schedule/orders.hpp"

namespace baton {

/// An executor whose ranks are all in one process. `Memory` holds the buffers of one rank, on the
/// host (HostMemory) or on a GPU (DeviceMemory).
template <class Memory>
class OneProcessExecutor : public Executor {
 public:
  explicit OneProcessExecutor(int ranks) : ranks_(ranks) {}

  std::vector<int> local_ranks() const override {
    std::vector<int> all(ranks_);
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  void prepare(std::vector<Schedule> schedules) override {
    schedules_ = std::move(schedules);
    order_ = run_order(schedules_);
    memory_.clear();
    for (const Schedule& schedule : schedules_) memory_.emplace_back(schedule);
  }

  void write(int rank, const Slice& into, std::span<const float> from) override {
    memory_[rank].write(into, from);
  }
  void read(std::span<float> into, int rank, const Slice& from) const override {
    memory_[rank].read(into, from);
  }

 protected:
  /// Copies one message between the memories of two ranks.
  virtual void deliver(Memory& receiver, const Slice& into, const Memory& sender, const Slice& from) = 0;
  /// Runs a step that needs no other rank.
  virtual void run_local(const Schedule& schedule, const Step& step, Memory& memory) = 0;

  void take(const Turn& turn) {
    const Schedule& schedule = schedules_[turn.rank];
    const Step& step = schedule.steps()[turn.step];
    if (step.verb == Verb::send)
      deliver(memory_[step.peer], turn.into, memory_[turn.rank], step.reads[0]);
    else
      run_local(schedule, step, memory_[turn.rank]);
  }

  const std::vector<Schedule>& prepared() const { return schedules_; }
  const std::vector<Turn>& order() const { return order_; }
  const Memory& memory_of(int rank) const { return memory_[rank]; }

 private:
  int ranks_;
  std::vector<Schedule> schedules_;
  std::vector<Turn> order_;
  std::vector<Memory> memory_;
};

}  // namespace baton
