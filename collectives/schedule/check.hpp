// SPDX-License-Identifier: Apache-2.0
// The proof that a set of schedules, one a rank, can run, made before anything runs, and the text
// of a schedule.
//
//   matching   every send has a receive of equal size
//   coverage   every element of every output is written
//   progress   no deadlock, in free order and under the grouping rule of orders.hpp, where a send
//              waits for its receive
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/schedule/schedule.hpp"

namespace baton {

/// The data moved and the operations done by one rank, counted from its steps.
struct Traffic {
  std::int64_t sent_bytes = 0;
  std::int64_t received_bytes = 0;
  std::int64_t messages = 0;
  double flops = 0;
};

Traffic traffic_of(const Schedule& schedule);

/// The operations of the rank that does most over the mean of the ranks, of `flops` each; empty if
/// none does any.
std::optional<double> balance(const std::vector<double>& flops);

/// Memory of one rank's buffers, in bytes.
struct Footprint {
  std::int64_t tensors = 0;  ///< Bytes of inputs and outputs.
  std::int64_t scratch = 0;  ///< Bytes of the other memory that the steps work in.

  std::int64_t total() const { return tensors + scratch; }
  bool operator==(const Footprint&) const = default;
};

Footprint footprint(const Schedule& schedule);

/// The larger of two ranks' footprints, the first of equals.
inline Footprint larger(const Footprint& one, const Footprint& other) {
  return other.total() > one.total() ? other : one;
}

/// The largest footprint of any rank.
Footprint largest_footprint(std::span<const Schedule> schedules);

/// The cost of a set of schedules.
struct Counts {
  std::vector<Traffic> ranks;
  /// The most messages on any chain of steps that wait for one another.
  int hops = 0;

  /// Largest number of bytes that a rank sends.
  std::int64_t busiest_sent_bytes() const;
};

/// Proves `schedules` and counts them. Throws ScheduleError naming `collective`, rank, step and
/// source line.
Counts check(const std::string& collective, std::span<const Schedule> schedules);

/// True if checked schedules also end when each rank runs its messages in `groups`, one group after
/// the other. `groups` has one row a rank: the group of each message, -1 for any other step.
bool progresses_in_groups(std::span<const Schedule> schedules, const std::vector<std::vector<int>>& groups);

}  // namespace baton
