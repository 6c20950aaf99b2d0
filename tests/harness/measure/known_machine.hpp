// SPDX-License-Identifier: Apache-2.0
// A machine whose costs are known, since it is simulated, for tests of what measures machines.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "tests/collectives/simulator/uniform_machine.hpp"

namespace baton {

/// Takes as long as a topology says, and moves nothing.
class KnownMachine : public Executor {
 public:
  explicit KnownMachine(Topology topology) : topology_(std::move(topology)) {}

  std::vector<int> local_ranks() const override { return {}; }
  Refusal unsupported(std::span<const Schedule>) const override { return {}; }
  void prepare(std::vector<Schedule> schedules) override { schedules_ = std::move(schedules); }
  void write(int, const Slice&, std::span<const float>) override {}
  void read(std::span<float>, int, const Slice&) const override {}
  void synchronise() override {}
  double run() override { return simulate(source_of(schedules_), topology_).seconds; }
  std::vector<StepTime> run_traced() override {
    return simulate(source_of(schedules_), topology_, true).timeline;
  }
  double one_way_seconds(std::int64_t bytes, int from, int to) override {
    return topology_.link(from, to).message_seconds(static_cast<double>(bytes));
  }

  const Topology& topology() const { return topology_; }

 private:
  Topology topology_;
  std::vector<Schedule> schedules_;
};

}  // namespace baton
