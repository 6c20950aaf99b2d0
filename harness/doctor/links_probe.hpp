// SPDX-License-Identifier: Apache-2.0
// Measures messages between the ranks of one executor, and equal work on their accelerators.
#pragma once

#include <cstdint>
#include <memory>

#include "collectives/executors/executor.hpp"
#include "collectives/executors/team.hpp"
#include "harness/doctor/readings.hpp"

namespace baton::doctor {

/// Measures the links of one executor on the first `ranks` processes. Every process of the world
/// makes one.
class LinkProbe {
 public:
  LinkProbe(Team team, const ExecutorEntry& entry, int ranks);

  /// Measures one repeat: every pair with a small and a large message, and the work of
  /// accelerators. Does nothing in a process without a rank. Collective over the team.
  void measure();

  const LinkReadings& readings() const { return readings_; }
  bool has_device() const { return executor_ && executor_->device() != nullptr; }
  const DeviceReadings& device() const { return device_; }

 private:
  double one_way(std::int64_t bytes, const PairReadings& pair, int rounds);
  int rounds_for(std::int64_t bytes);
  void work();

  Team team_;
  std::unique_ptr<Executor> executor_;  // null in a process without a rank
  LinkReadings readings_;
  DeviceReadings device_;
  int small_rounds_ = 0;  // of a pair, in one repeat
  int large_rounds_ = 0;
};

}  // namespace baton::doctor
