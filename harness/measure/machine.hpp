// SPDX-License-Identifier: Apache-2.0
// Models of the machine at hand: the two numbers of the alpha-beta model and a whole topology, both
// measured; and what the simulator predicts with a topology.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "collectives/simulator/simulate.hpp"
#include "collectives/simulator/topology/topology.hpp"
#include "harness/cases/case.hpp"
#include "harness/process/world.hpp"

namespace baton {

/// The alpha-beta model of a message: alpha + bytes / beta seconds.
struct AlphaBeta {
  /// Latency in seconds. The hardware's value if the executor can measure it, otherwise that of its
  /// messages. Used for the bound.
  double alpha_seconds = 0;
  /// Bytes a second.
  double beta = 1;
  /// Seconds that an empty round takes.
  double floor_seconds = 0;
  /// The values of the executor's own messages, which decide the number of blocks; 0 if they are
  /// the values above.
  double message_alpha_seconds = 0;
  double message_beta = 0;

  /// The least seconds for `hops` messages that wait for one another while the busiest rank sends
  /// `bytes`.
  double bound_seconds(int hops, std::int64_t bytes) const {
    return floor_seconds + hops * alpha_seconds + static_cast<double>(bytes) / beta;
  }

  /// The number of blocks that makes a chain of P ranks fastest, sqrt((P-2) N / (alpha beta)), from
  /// 1 to `most`.
  int best_blocks(int ranks, std::int64_t bytes, std::int64_t most) const;
};

/// Measures ping-pongs between neighbours, one pair at a time. alpha is half the round trip of 8
/// bytes; beta is the best rate, less alpha, of 64 KiB to 4 MiB where a message takes more than 2
/// alpha. Each time is the least of its rounds, and each number the median over at most 8 pairs.
/// Devices measure their hardware themselves; the executor's messages are then
/// `message_alpha_seconds` and `message_beta`. Nothing is measured if ranks share a device.
AlphaBeta measure_alpha_beta(Executor& executor, const Team& team, int ranks);

/// How far apart the ranks leave `Executor::synchronise`, in seconds: the median over 100 starts of
/// last minus first. Not a number if the ranks run on several hosts, whose clocks differ.
double measure_start_skew(Executor& executor, const Team& team);

/// Seconds that one reading of the clock takes.
double timer_overhead_seconds();

/// Measures what messages and local steps cost on an executor, with small schedules on all of its
/// ranks. All calls are collective over its team, and all processes get the same seconds: the least
/// over rounds of the slowest rank's time.
class Probes {
 public:
  Probes(Executor& executor, const Team& team, int ranks) : executor_(executor), team_(team), ranks_(ranks) {}

  /// Elements of a row of the combined states, the d_v of most models.
  static constexpr std::int64_t row = 128;

  /// A message to rank 1 on an idle network, from a long ping-pong. On an executor that streams, a
  /// ping-pong would return before all of its message has arrived; there it is the time that one
  /// message adds to an empty round.
  double message_seconds(std::int64_t bytes);
  /// A message while ranks 0 and 1 send to one another at once.
  double exchange_seconds(std::int64_t bytes);
  /// A message while every rank sends to the next and receives from the one before.
  double shift_seconds(std::int64_t bytes);
  /// A map of a state of `bytes`, applied to a state on the first `busy` ranks at once.
  double combine_seconds(std::int64_t bytes, int busy);
  /// A copy of `bytes` on the first `busy` ranks at once.
  double copy_seconds(std::int64_t bytes, int busy);
  /// A round that contains a single small step.
  double round_seconds();

  bool streams() const { return executor_.device() != nullptr && executor_.device()->streams_messages(); }

 private:
  /// Records `times` repetitions on one rank.
  using Text = std::function<void(Schedule&, int times)>;

  /// The seconds that one repetition adds to a round.
  double seconds_of_one(const Text& text);
  double least_round(const Text& text, int times);

  Executor& executor_;
  const Team& team_;
  int ranks_;
};

/// Measures messages, combines and copies of `executor` from 8 B to 16 MiB, on one pair and on all
/// ranks at once, each in a small schedule of its own. `stands_on` names what is measured: machine,
/// executor, commit. Collective over the team; all processes get the same topology.
Topology calibrate(Executor& executor, const Team& team, int ranks, const std::string& stands_on);

/// `links` without the rates of its kernels, for those that one rank of `machine` will measure:
/// links, copies and combines stay, and the name and the calibration say where each comes from.
/// `stands_on` names what is measured: machine, executor, commit.
Topology awaiting_kernels(const Topology& links, const std::string& machine, const std::string& stands_on);

/// Adds the rates of the kernels in `schedules`, from traced rounds: operations a second, or bytes
/// a second for a kernel without operations; the median over steps of the slowest rank. With one
/// rank the residual becomes the distance of the round from the simulated one, if it is larger.
/// `source` says where the rates come from. Changes nothing if the executor cannot tell when its
/// steps ran. Collective over the team.
void calibrate_kernels(Topology& topology, Executor& executor, const Team& team,
                       const std::vector<Schedule>& schedules, const std::string& source = {});

/// The schedules of `bench_case` in so many blocks, built one by one. Keeps a reference to
/// `bench_case`.
ScheduleSource schedules_of(const Case& bench_case, int blocks);

/// The number of blocks with which `bench_case` is about fastest on `topology`, local work
/// included, as the simulator sees it. If the search would take too long: the number of the
/// alpha-beta model, halved until it can be simulated.
int best_blocks_on(const Case& bench_case, const Topology& topology);

/// A simulated time beside a measured one.
struct Prediction {
  double seconds = 0;
  /// The name of the topology.
  std::string topology;
  /// Why the prediction goes beyond what the topology was calibrated with; empty if it does not.
  std::string extrapolated;
};

/// The time of `bench_case` in so many blocks on `topology`; empty if it cannot be simulated.
std::optional<Prediction> predict(const Case& bench_case, int blocks, const Topology& topology);

/// Why the simulation of `source` goes beyond what `topology` was calibrated with: its kernels, its
/// ranks, the sizes of its messages or their paths. Empty if it does not, or if the topology was
/// not calibrated.
std::string extrapolates(const ScheduleSource& source, const Simulation& simulation,
                         const Topology& topology);

}  // namespace baton
