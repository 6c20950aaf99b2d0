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
/// over rounds of the slowest rank's time. Seconds are the difference of two such readings, and not
/// a number if noise made it negative: then nothing is known.
class Probes {
 public:
  /// Groups of ranks that are joined by links of one class. Groups use different links.
  using Groups = std::vector<std::vector<int>>;

  Probes(Executor& executor, const Team& team, int ranks) : executor_(executor), team_(team), ranks_(ranks) {}

  /// Elements of a row of the combined states, the d_v of most models.
  static constexpr std::int64_t row = 128;

  /// Seconds of a message between the first two ranks of the first group on an idle network, from a
  /// long ping-pong. On an executor that streams, a ping-pong would return before all of its
  /// message has arrived: there it is the time that one message adds to an empty round.
  double message_seconds(const Groups& groups, std::int64_t bytes);
  /// Seconds of a message while the first two ranks of the first group send to one another at once.
  double exchange_seconds(const Groups& groups, std::int64_t bytes);
  /// Seconds of a message while every rank sends to the next of its group and receives from the one
  /// before. With `at_once` messages under way in each direction, their latencies overlap.
  double shift_seconds(const Groups& groups, std::int64_t bytes, int at_once = 1);
  /// Seconds to apply a map with a state of `bytes` to a state, on the first `busy` ranks at once.
  double combine_seconds(std::int64_t bytes, int busy);
  /// Floating-point operations a second of affine maps of `heads` heads, with keys and values of
  /// 128, applied to states on the first `busy` ranks at once: those of the slowest rank, 0 if
  /// unknown.
  double product_flops_per_second(std::int64_t heads, int busy);
  /// Seconds of a copy of `bytes` on the first `busy` ranks at once.
  double copy_seconds(std::int64_t bytes, int busy);
  /// Seconds of a round that contains a single small step.
  double round_seconds();

  bool streams() const { return executor_.device() != nullptr && executor_.device()->streams_messages(); }

 private:
  /// A function that records `times` repetitions of an operation in the schedule of one rank.
  using Text = std::function<void(Schedule&, int times)>;

  /// The seconds that one repetition, of `bytes`, adds to a round.
  double seconds_of_one(std::int64_t bytes, const Text& text);
  double least_round(const Text& text, int times);

  Executor& executor_;
  const Team& team_;
  int ranks_;
};

}  // namespace baton
