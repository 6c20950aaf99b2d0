// SPDX-License-Identifier: Apache-2.0
// The proof that a set of schedules, one a rank, can run: done before anything runs.
//
//   matching   every send has its receive, of equal size
//   coverage   every element of every output is written
//   progress   no deadlock, in free order and under the grouping rule (groups.hpp), with sends that wait for
//   their
//              receives
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectives/schedule/schedule.hpp"

namespace baton {

/// What one rank moves and computes, counted from its steps.
struct Traffic {
  std::int64_t sent_bytes = 0;
  std::int64_t received_bytes = 0;
  std::int64_t messages = 0;
  double flops = 0;
};

/// What a set of schedules costs.
struct Counts {
  std::vector<Traffic> ranks;
  /// The most messages on any chain of steps that wait for one another.
  int hops = 0;

  /// Bytes sent by the rank that sends most.
  std::int64_t busiest_sent_bytes() const;
};

/// Proves `schedules` and counts them. Throws ScheduleError naming `collective`, rank, step and source line.
Counts check(const std::string& collective, std::span<const Schedule> schedules);

/// True if checked schedules also end where the messages of each rank run in `groups`, one after the other; one row a
/// rank, for each step its group, -1 for what is no message.
bool progresses_in_groups(std::span<const Schedule> schedules, const std::vector<std::vector<int>>& groups);

/// Name of the file and the line that recorded `step`.
std::string where(const Step& step);

/// How errors name a step, number `index` of its rank: "step 4 (recv, all_scan.cpp:31)".
std::string step_name(const Step& step, int index);

}  // namespace baton
