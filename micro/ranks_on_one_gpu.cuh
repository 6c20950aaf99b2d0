// SPDX-License-Identifier: Apache-2.0
// All ranks' schedules on one GPU, step by step in an order in which each can run: device bodies and the texts that call
// them, at any number of ranks. A message is a copy.
#pragma once

#include <utility>
#include <vector>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/memory.cuh"
#include "collectives/executors/cuda/steps.cuh"
#include "collectives/executors/executor.hpp"
#include "collectives/schedule/orders.hpp"

namespace baton {

class RanksOnOneGpu : public Executor {
 public:
  explicit RanksOnOneGpu(int ranks) : ranks_(ranks) {}

  std::vector<int> local_ranks() const override {
    std::vector<int> all(ranks_);
    for (int rank = 0; rank < ranks_; ++rank) all[rank] = rank;
    return all;
  }
  Refusal unsupported(std::span<const Schedule> schedules) const override {
    for (const Schedule& schedule : schedules) {
      const Refusal reason = lacks_device_body(schedule);
      if (!reason.empty()) return reason;
    }
    return {};
  }
  /// Runs once; calls before(rank, step) and after(rank, step) around what is enqueued for a step.
  template <class Before, class After>
  void run_between(Before before, After after) {
    for (const Turn& turn : order_) {
      before(turn.rank, turn.step);
      take(turn);
      after(turn.rank, turn.step);
    }
  }
  const std::vector<Schedule>& schedules() const { return schedules_; }
  const DeviceMemory& memory(int rank) const { return memory_[rank]; }

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
  void synchronise() override { cuda(cudaDeviceSynchronize()); }
  double run() override {
    for (const Turn& turn : order_) take(turn);
    cuda(cudaDeviceSynchronize());
    return 0;
  }
  double one_way_seconds(std::int64_t, int, int) override { return 0; }

 private:
  void take(const Turn& turn) {
    const Schedule& schedule = schedules_[turn.rank];
    const Step& step = schedule.steps()[turn.step];
    if (step.verb != Verb::send)
      return run_on_device(nullptr, schedule, step, memory_[turn.rank].operands(step));
    const Slice& from = step.reads[0];
    cuda(cudaMemcpyAsync(memory_[step.peer].at(turn.into), memory_[turn.rank].at(from),
                         static_cast<std::size_t>(from.bytes()), cudaMemcpyDeviceToDevice, nullptr));
  }

  int ranks_;
  std::vector<Schedule> schedules_;
  std::vector<Turn> order_;
  std::vector<DeviceMemory> memory_;
};

}  // namespace baton
