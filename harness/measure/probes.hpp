// SPDX-License-Identifier: Apache-2.0
// Probes: each is a schedule that repeats one operation, so that two lengths of it give the cost of
// one repetition.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "collectives/executors/team.hpp"

namespace baton {

/// Measures what messages and local steps cost on an executor, with small schedules on all of its
/// ranks. All calls are collective over its team, and all processes get the same seconds: the least
/// over rounds of the slowest rank's time.
class Probes {
 public:
  /// Ranks that are joined by links of one class, in groups that use different links.
  using Groups = std::vector<std::vector<int>>;

  Probes(Executor& executor, const Team& team, int ranks) : executor_(executor), team_(team), ranks_(ranks) {}

  /// Elements of a row of the combined states, the d_v of most models.
  static constexpr std::int64_t row = 128;

  /// A message between the first two ranks of the first group on an idle network, from a long
  /// ping-pong. On an executor that streams, a ping-pong would return before all of its message has
  /// arrived; there it is the time that one message adds to an empty round.
  double message_seconds(const Groups& groups, std::int64_t bytes);
  /// A message while these two send to one another at once.
  double exchange_seconds(const Groups& groups, std::int64_t bytes);
  /// A message while every rank sends to the next of its group and receives from the one before.
  /// With `at_once` messages under way in each direction, the latency of one passes under the
  /// others.
  double shift_seconds(const Groups& groups, std::int64_t bytes, int at_once = 1);
  /// A map of a state of `bytes`, applied to a state on the first `busy` ranks at once.
  double combine_seconds(std::int64_t bytes, int busy);
  /// Affine maps of `heads` heads, with keys and values of 128, applied to states on the first
  /// `busy` ranks at once: operations a second of the slowest of them, 0 if it cannot be told.
  double product_flops_a_second(std::int64_t heads, int busy);
  /// A copy of `bytes` on the first `busy` ranks at once.
  double copy_seconds(std::int64_t bytes, int busy);
  /// A round that contains a single small step.
  double round_seconds();

  bool streams() const { return executor_.device() != nullptr && executor_.device()->streams_messages(); }

 private:
  /// Records `times` repetitions on one rank.
  using Text = std::function<void(Schedule&, int times)>;

  /// The seconds that one repetition, of `bytes`, adds to a round.
  double seconds_of_one(std::int64_t bytes, const Text& text);
  double least_round(const Text& text, int times);

  Executor& executor_;
  const Team& team_;
  int ranks_;
};

}  // namespace baton
