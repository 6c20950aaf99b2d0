// SPDX-License-Identifier: Apache-2.0
// From probes to a topology.
//
//   a message alone                      its time on an idle network
//   half an exchange between two ranks   what a message holds of a rank that sends and receives
//   an exchange between two devices      what a message holds of a port: there is one a direction
//   a shift on all P ranks               where it takes longer than an exchange, the memory that all share is the
//                                        reason, and a message holds that for its P-th part
//   combines, copies: alone and on all   the same
#include "harness/model/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "collectives/schedule/kernel.hpp"
#include "harness/measure/probes.hpp"
#include "harness/measure/statistics.hpp"

namespace baton {
namespace {

constexpr std::int64_t least_bytes = 8, most_bytes = 16 << 20;

/// Sizes of the curves' points.
std::vector<std::int64_t> sizes() {
  std::vector<std::int64_t> sizes{least_bytes, 512};
  for (std::int64_t bytes = 4096; bytes <= most_bytes; bytes *= 2) sizes.push_back(bytes);
  return sizes;
}

/// A larger size never takes less: what noise says otherwise is levelled, but for a hair's breadth that leaves a slope.
void add_point(Curve& curve, double bytes, double seconds) {
  constexpr double least_step = 1e-12;
  if (!curve.points.empty()) seconds = std::max(seconds, curve.points.back().seconds + least_step);
  curve.points.push_back({bytes, seconds});
}

/// What a step holds of the shared memory where `all` ranks at once take longer than one alone; nothing where they do not.
double shared_seconds(double alone, double together, int ranks) {
  constexpr double noise = 1.1;
  return together > noise * alone ? together / ranks : 0;
}

bool is_shared(const Curve& curve) {
  return std::any_of(curve.points.begin(), curve.points.end(), [](auto& p) { return p.seconds > 1e-9; });
}

LinkModel calibrate_link(Probes& probes, Transport moved_by, int ranks) {
  LinkModel link{.moved_by = moved_by};
  for (const std::int64_t bytes : sizes()) {
    const double size = static_cast<double>(bytes);
    const double exchange = probes.exchange_seconds(bytes);
    add_point(link.measured_idle, size, probes.message_seconds(bytes));
    add_point(link.measured, size, moved_by == Transport::wire ? exchange : exchange / 2);
    add_point(link.node_measured, size, shared_seconds(exchange, probes.shift_seconds(bytes), ranks));
  }
  if (!is_shared(link.node_measured)) link.node_measured = {};
  const auto& ends = link.measured.points;
  link.overhead_seconds = ends.front().seconds;
  link.latency_seconds = link.latency(static_cast<double>(least_bytes));
  link.bytes_a_second = ends.back().bytes / ends.back().seconds;
  return link;
}

/// `seconds(bytes, busy)` measures on so many busy ranks; `touched(bytes)` is what the simulator counts for the step.
template <typename Seconds, typename Touched>
Rate calibrate_step(const Seconds& seconds, const Touched& touched, int ranks) {
  Rate rate;
  for (const std::int64_t bytes : sizes()) {
    if (bytes < Probes::row * element_bytes) continue;
    const double alone = seconds(bytes, 1);
    add_point(rate.measured, touched(bytes), alone);
    add_point(rate.node_measured, touched(bytes), shared_seconds(alone, seconds(bytes, ranks), ranks));
  }
  if (!is_shared(rate.node_measured)) rate.node_measured = {};
  rate.bytes_a_second = rate.measured.points.back().bytes / rate.measured.points.back().seconds;
  return rate;
}

/// How far messages of sizes between the points lie from the curve.
double residual(Probes& probes, const LinkModel& link) {
  double sum = 0;
  int count = 0;
  for (std::int64_t bytes = 96 << 10; bytes <= most_bytes; bytes *= 4, ++count)
    sum +=
        std::abs(std::log(probes.message_seconds(bytes) / link.message_seconds(static_cast<double>(bytes))));
  return std::exp(sum / count) - 1;
}

/// Operations and bytes a second of each call of a kernel.
struct KernelRates {
  std::vector<double> flops, bytes;
};

/// The slowest rank's median: it is what a round waits for. Infinite where no rank has any. Collective.
double slowest_ranks(const std::vector<double>& rates, const Team& team) {
  return -team.max(rates.empty() ? -std::numeric_limits<double>::infinity() : -median(rates));
}

}  // namespace

Topology calibrate(Executor& executor, const Team& team, int ranks, const std::string& stands_on) {
  Probes probes(executor, team, ranks);
  Topology topology;
  topology.name = "this machine";
  topology.description = "the machine at hand, as measured";
  topology.ranks_a_node = ranks;
  topology.round_seconds = probes.round_seconds();
  topology.streams = probes.streams();
  const Transport moved_by = executor.device() != nullptr ? Transport::wire : Transport::engine;
  topology.intra_node = calibrate_link(probes, moved_by, ranks);
  const auto copied = [](std::int64_t bytes) { return 2.0 * static_cast<double>(bytes); };
  const auto combined = [](std::int64_t bytes) {  // two states in, one out, and a decay a row
    return (3.0 + 1.0 / Probes::row) * static_cast<double>(bytes);
  };
  DeviceRates& device = topology.device;
  device.copy =
      calibrate_step([&](auto bytes, int busy) { return probes.copy_seconds(bytes, busy); }, copied, ranks);
  device.combine = calibrate_step([&](auto bytes, int busy) { return probes.combine_seconds(bytes, busy); },
                                  combined, ranks);
  // Until kernels are measured: as many operations and bytes a second as a combine has.
  device.kernel.bytes_a_second = device.combine.bytes_a_second;
  device.kernel.flops_a_second = device.combine.bytes_a_second * 2 / (3 * element_bytes);
  device.combine.flops_a_second = device.kernel.flops_a_second;
  topology.calibration = {.stands_on = stands_on,
                          .most_ranks = ranks,
                          .least_bytes = least_bytes,
                          .most_bytes = most_bytes,
                          .residual = residual(probes, topology.intra_node)};
  return topology;
}

void calibrate_kernels(Topology& topology, Executor& executor, const Team& team,
                       const std::vector<Schedule>& schedules) {
  // All ranks' kernels, for ranks differ in what they run and must ask one another about the same ones.
  std::map<std::string, KernelRates> measured;
  for (const Schedule& schedule : schedules)
    for (const Kernel& kernel : schedule.kernels()) measured[kernel.name];
  constexpr int rounds = 3;
  executor.prepare(schedules);
  for (int round = 0; round < rounds; ++round) {
    executor.synchronise();
    for (const StepTime& time : executor.run_traced()) {
      const Step& step = schedules[time.rank].steps()[time.step];
      const double seconds = time.finish_seconds - time.start_seconds;
      if (step.verb != Verb::compute || seconds <= 0) continue;
      const Kernel& kernel = schedules[time.rank].kernels()[step.body];
      measured[kernel.name].flops.push_back(kernel.flops / seconds);
      measured[kernel.name].bytes.push_back(kernel.bytes / seconds);
    }
  }
  for (const auto& [name, rates] : measured) {
    const double flops = slowest_ranks(rates.flops, team), bytes = slowest_ranks(rates.bytes, team);
    constexpr double no_limit = 1e18;
    if (std::isinf(flops)) continue;  // the executor cannot tell
    // What moves without computing is limited by its bytes, anything else by its operations.
    topology.device.kernels[name] = {.flops_a_second = flops > 0 ? flops : no_limit,
                                     .bytes_a_second = flops > 0 ? no_limit : std::max(bytes, 1.0)};
  }
}

}  // namespace baton
