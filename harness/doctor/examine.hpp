// SPDX-License-Identifier: Apache-2.0
// Takes the readings, several times over (`Plan::repeats`):
//
//   rest:    all ranks sleep, and what the cores do is the work of others
//   compute: all ranks do the same computation at once
//   links:   messages between every pair of ranks, one pair at a time
//   devices: all accelerators do the same work at once, and tell their clocks right after it
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "harness/doctor/readings.hpp"
#include "harness/process/world.hpp"

namespace baton::doctor {

/// The settings of an examination.
struct Plan {
  /// Executors whose links are measured. Those that this machine cannot run are left out.
  std::vector<std::string> executors{host_executor(), "nccl"};
  int repeats = 7;
};

/// The most ranks up to `most` that `entry` can run here; 0 if it cannot run one.
int most_ranks(const ExecutorEntry& entry, int most);

/// Examines this machine with all processes of `world`; `enter` gets the name of each part as it
/// begins. Collective; only the readings of rank 0 are complete. Throws SystemError if a library
/// fails.
Readings examine(const World& world, const Plan& plan, const std::function<void(const std::string&)>& enter);

}  // namespace baton::doctor
