// SPDX-License-Identifier: Apache-2.0
// Executor `simulator`: discrete events in virtual time over the very same schedules, on a machine that a file of
// topologies/ describes. It moves no data, so it has no buffers to write or read and is no `Executor`; what it says is
// a prediction. The same schedules on the same topology always give the same times.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collectives/executors/timing.hpp"
#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/schedule.hpp"
#include "collectives/simulator/topology/topology.hpp"

namespace baton {

/// What one simulated round showed.
struct Simulation {
  /// From the round's start to the end of the last step.
  double seconds = 0;
  /// When each rank's last step ended.
  std::vector<double> rank_seconds;
  /// Bytes sent by the rank that sends most, and the most messages on a chain of steps that wait for one another.
  std::int64_t busiest_sent_bytes = 0;
  int hops = 0;
  std::int64_t steps = 0;
  std::int64_t messages = 0;
  /// Of the smallest and the largest message; 0 where there is none.
  std::int64_t least_message_bytes = 0;
  std::int64_t most_message_bytes = 0;
  /// When each step ran, where that was asked for.
  std::vector<StepTime> timeline;
};

/// A schedule for each rank, made when it is asked for: those of thousands of ranks do not fit in memory at once.
struct ScheduleSource {
  /// Stands in errors.
  std::string name;
  int ranks = 1;
  std::function<Schedule(int rank)> build;
};

/// The most steps that one simulation takes on: tens of seconds on one core.
inline constexpr double most_simulated_steps = 5e7;

/// Why `source` cannot be simulated on `topology`, or an empty string. Builds one rank's schedule to see.
Refusal unsupported_by_simulator(const ScheduleSource& source, const Topology& topology);

/// Runs the schedules of `source` in virtual time. Proves on the way that messages match and that nothing deadlocks.
/// Throws ScheduleError naming collective, rank and step where that fails or a step is a native.
Simulation simulate(const ScheduleSource& source, const Topology& topology, bool with_timeline = false);

}  // namespace baton
