// SPDX-License-Identifier: Apache-2.0
// The two numbers of the alpha-beta model, measured on the machine at hand.
#pragma once

#include <cstdint>

#include "collectives/executors/executor.hpp"
#include "harness/process/launch.hpp"

namespace baton {

/// What a message costs: alpha + bytes / beta seconds.
struct Link {
  /// Of the hardware where the executor can tell, else of the executor's own messages: what bounds are made of.
  double alpha_seconds = 0;
  /// Bytes a second.
  double beta = 1;
  /// What a round reads in which nothing is done.
  double floor_seconds = 0;
  /// Of the executor's own messages, which decide into how many blocks a state is best cut; 0 where they are the above.
  double message_alpha_seconds = 0;
  double message_beta = 0;

  /// The least seconds for `hops` messages that wait for one another while the busiest rank sends `bytes`.
  double bound_seconds(int hops, std::int64_t bytes) const {
    return floor_seconds + hops * alpha_seconds + static_cast<double>(bytes) / beta;
  }

  /// The number of blocks that makes a chain of P ranks fastest, sqrt((P-2) N / (alpha beta)), from 1 to
  /// `most`.
  int best_blocks(int ranks, std::int64_t bytes, std::int64_t most) const;
};

/// Measures by ping-pongs between neighbours, one pair at a time: alpha is half the round trip of 8 bytes;
/// beta is the best rate, alpha taken off, of 64 KiB to 4 MiB where a message takes more than 2 alpha. The least of the
/// rounds, the median over at most 8 pairs. Devices measure their wire themselves; the executor's messages are then
/// `message_alpha_seconds` and `message_beta`.
Link measure_link(Executor& executor, const Team& team, int ranks);

/// How far apart the ranks leave `Executor::synchronise`: the median over 100 starts of last minus first, in
/// seconds. Not a number where the ranks run on several hosts, whose clocks differ.
double measure_start_skew(Executor& executor, const Team& team);

/// Seconds that one reading of the clock takes.
double timer_overhead_seconds();

}  // namespace baton
