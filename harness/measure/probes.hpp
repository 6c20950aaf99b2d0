// SPDX-License-Identifier: Apache-2.0
// What messages and local steps cost on an executor, measured with schedules made for it: whatever runs schedules can be
// calibrated, and with its own overheads.
#pragma once

#include <cstdint>
#include <functional>

#include "collectives/executors/executor.hpp"
#include "harness/process/launch.hpp"

namespace baton {

/// Small schedules on all ranks of an executor. All calls are collective over its team; all processes get the same
/// seconds: the least over rounds of the slowest rank's time, for whatever else the machine did meanwhile is no property
/// of it.
class Probes {
 public:
  Probes(Executor& executor, const Team& team, int ranks) : executor_(executor), team_(team), ranks_(ranks) {}

  /// Elements of a row of the states that are combined, the d_v of most models.
  static constexpr std::int64_t row = 128;

  /// A message on its way to rank 1 and nothing else, from a long ping-pong; where an executor streams, whose ball would be
  /// on its way back before all of it has come, what one message adds to an empty round.
  double message_seconds(std::int64_t bytes);
  /// A message where ranks 0 and 1 send to one another at once.
  double exchange_seconds(std::int64_t bytes);
  /// A message where every rank sends to the next and receives from the one before, at once.
  double shift_seconds(std::int64_t bytes);
  /// The map of a state of `bytes`, applied to a state on the first `busy` ranks at once.
  double combine_seconds(std::int64_t bytes, int busy);
  /// A copy of `bytes` on the first `busy` ranks at once.
  double copy_seconds(std::int64_t bytes, int busy);
  /// A round with nothing in it but one small step.
  double round_seconds();

  bool streams() const { return executor_.device() != nullptr && executor_.device()->streams_messages(); }

 private:
  /// Records `times` repetitions on one rank.
  using Text = std::function<void(Schedule&, int times)>;

  /// What one repetition adds to a round.
  double seconds_of_one(const Text& text);
  double least_round(const Text& text, int times);

  Executor& executor_;
  const Team& team_;
  int ranks_;
};

}  // namespace baton
