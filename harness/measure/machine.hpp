// SPDX-License-Identifier: Apache-2.0
// Models of the machine at hand: the two numbers of the alpha-beta model and a whole topology, both
// measured; and what the simulator predicts with a topology.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "collectives/simulator/simulate.hpp"
#include "collectives/simulator/topology/topology.hpp"
#include "harness/cases/case.hpp"
#include "harness/process/placement.hpp"
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
  /// The values of messages between hosts; 0 where all ranks share one. If no two ranks share a
  /// host, the first two values above are these.
  double between_alpha_seconds = 0;
  double between_beta = 0;
  /// Operations a second of the executor's products of affine maps on one rank, as measured; 0 if
  /// they were not, and then they cost nothing.
  double product_flops_a_second = 0;

  /// The least seconds for `hops` messages that wait for one another while the busiest rank sends
  /// `bytes`, and a rank has products of `flops` operations.
  double bound_seconds(int hops, std::int64_t bytes, double flops = 0) const {
    return floor_seconds + hops * alpha_seconds + busy_seconds(bytes, flops);
  }
  /// The part of it for which the busiest link or rank is busy.
  double busy_seconds(std::int64_t bytes, double flops) const {
    const double products = product_flops_a_second > 0 ? flops / product_flops_a_second : 0;
    return std::max(static_cast<double>(bytes) / beta, products);
  }

  /// The number of blocks that makes a chain of P ranks fastest, sqrt((P-2) N / (alpha beta)), from
  /// 1 to `most`. Over several hosts, alpha and beta are those between hosts.
  int best_blocks(int ranks, std::int64_t bytes, std::int64_t most) const;
};

/// Measures ping-pongs between neighbours, one pair at a time. alpha is half the round trip of 8
/// bytes; beta is the best rate, less alpha, of 64 KiB to 4 MiB where a message takes more than 2
/// alpha. Each time is the least of its rounds, and each number the median over at most 8 pairs.
/// Over several hosts, pairs within a host and pairs of neighbouring hosts are measured apart.
/// Devices measure their hardware themselves; the executor's messages are then
/// `message_alpha_seconds` and `message_beta`. Nothing is measured if ranks share a device.
AlphaBeta measure_alpha_beta(Executor& executor, const Team& team, const Placement& placement);

/// Operations a second of products of affine maps on the first `busy` of the executor's ranks at
/// once, over as many heads as keep a device busy, or over four on the host. 0 if ranks share a
/// device. Collective over the team.
double measure_products(Executor& executor, const Team& team, int ranks, int busy);

/// How far apart the ranks start a round.
struct StartSkew {
  /// The median over 100 starts of last minus first, in seconds. Not a number if it is not known.
  double seconds = 0;
  /// At most how wrong the differences of the hosts' clocks are; 0 on a single host.
  double clock_error_seconds = 0;
};

/// How far apart the ranks leave `Executor::synchronise`. Clocks of other hosts are compared with
/// that of rank 0's: of 100 messages there and back the fastest tells the difference best.
StartSkew measure_start_skew(Executor& executor, const Team& team, const Placement& placement);

/// What is known of the hosts of ranks that have several.
struct HostsOfRanks {
  int hosts = 0;
  /// Placement::words and Placement::irregular.
  std::string placement, irregular;
  /// The network interface that carries messages within a host and between hosts, as its counters
  /// of bytes show; "shared memory" if none does within a host, "no interface" if none does between
  /// hosts, as past the kernel. Empty if there is no such message, or on devices.
  std::string within_by, between_by;
  double clock_error_seconds = 0;

  /// The link of a kind in words, with what carries it.
  std::string words(const AlphaBeta& model) const;
};

/// Finds the above; nothing on a single host. Collective over the team.
std::optional<HostsOfRanks> hosts_of(Executor& executor, const Team& team, const Placement& placement,
                                     const StartSkew& skew);

/// Seconds that one reading of the clock takes.
double timer_overhead_seconds();

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

/// Measures messages, combines and copies of `executor` from 8 B to 16 MiB, on one pair and on all
/// ranks at once, each in a small schedule of its own. Hosts become nodes, and messages within and
/// between them are measured apart; ranks that do not fill hosts one after the other are one node.
/// `stands_on` names what is measured: machine, executor, commit. Collective over the team; all
/// processes get the same topology.
Topology calibrate(Executor& executor, const Team& team, const Placement& placement,
                   const std::string& stands_on);

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

/// The least time that the links allow `bench_case` in so many blocks where its ranks fill several
/// hosts, each message counted with the link that it takes. Empty on one host, for other
/// placements, and for natives.
std::optional<double> bound_over_hosts(const Case& bench_case, int blocks, const AlphaBeta& model,
                                       const Placement& placement);

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
