// SPDX-License-Identifier: Apache-2.0
// From probes to a topology.
//
//   a message alone             its time on an idle network
//   half an exchange of ranks   how long a message occupies a rank, which sends and receives
//   an exchange of devices      how long a message occupies a port, one for each direction
//   a shift on all P ranks      if it takes longer than an exchange, shared memory limits it, and
//                               a message occupies the memory for 1 / P of that time
//   combines and copies         the same, alone and on all ranks
//
// Hosts are nodes: messages within one are measured among its ranks, and messages between them
// among ranks of equal place: alone, several at a time in each direction, and so from all ranks.
//
// One rank has no links: it measures kernels, and the rest comes from a topology that exists.
#include "harness/measure/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "collectives/schedule/kernel.hpp"
#include "collectives/simulator/simulate.hpp"
#include "harness/machine/placement.hpp"
#include "harness/measure/alpha_beta.hpp"
#include "harness/measure/curves.hpp"
#include "harness/measure/probes.hpp"

namespace baton {
namespace {

constexpr std::int64_t least_bytes = 8, most_bytes = 16 << 20;
constexpr double no_limit = 1e18;  // operations or bytes a second

/// The sizes of a curve's points, in bytes.
std::vector<std::int64_t> sizes() {
  std::vector<std::int64_t> sizes{least_bytes, 512};
  for (std::int64_t bytes = 4096; bytes <= most_bytes; bytes *= 2) sizes.push_back(bytes);
  return sizes;
}

/// Completes a link from its measured curves: makes them rise, and derives overhead, latency and
/// rate.
LinkModel with_ends(LinkModel link) {
  link.measured_idle = rising(link.measured_idle.points);
  link.measured = rising(link.measured.points);
  if (!is_shared(link.node_measured)) link.node_measured = {};
  const auto& ends = link.measured.points;
  link.overhead_seconds = ends.front().seconds;
  link.latency_seconds = link.latency(static_cast<double>(least_bytes));
  link.bytes_per_second = ends.back().bytes / ends.back().seconds;
  return link;
}

/// Measures the link that joins the ranks of each group, all of one node.
LinkModel calibrate_link(Probes& probes, Transport moved_by, const Probes::Groups& groups, int ranks) {
  LinkModel link{.moved_by = moved_by};
  for (const std::int64_t bytes : sizes()) {
    const double size = static_cast<double>(bytes);
    const double exchange = probes.exchange_seconds(groups, bytes);
    link.measured_idle.points.push_back({size, probes.message_seconds(groups, bytes)});
    link.measured.points.push_back({size, moved_by == Transport::wire ? exchange : exchange / 2});
    add_point(link.node_measured, size, shared_seconds(exchange, probes.shift_seconds(groups, bytes), ranks));
  }
  return with_ends(link);
}

/// Measures the link between nodes, from groups of ranks with equal place. Its latency is long, so
/// that messages must be under way together for one to show how long it holds its port.
LinkModel calibrate_network(Probes& probes, const Probes::Groups& rails, int ranks_per_node) {
  constexpr std::int64_t long_ones = 256 << 10;  // take longer than any latency, and much memory
  const Probes::Groups pair{{rails.front()[0], rails.front()[1]}};
  const bool is_card_shared = ranks_per_node > 1;  // else both probes are the same, and differ by noise
  LinkModel link;
  for (const std::int64_t bytes : sizes()) {
    const double size = static_cast<double>(bytes);
    const int at_once = bytes > long_ones ? 2 : 10;
    const double idle = probes.message_seconds(pair, bytes);
    const double both_ways = probes.shift_seconds(pair, bytes, at_once);
    link.measured_idle.points.push_back({size, idle});
    // A message alone holds its port for no longer than it takes. Both ways may take longer, if the
    // rank's core moves the bytes of both.
    link.measured.points.push_back({size, std::min(idle, both_ways)});
    if (!is_card_shared) continue;
    const double together = probes.shift_seconds(rails, bytes, at_once);
    add_point(link.node_measured, size, shared_seconds(both_ways, together, ranks_per_node));
  }
  return with_ends(link);
}

/// Measures the rate of a local step. `seconds(bytes, busy)` measures it on so many busy ranks;
/// `touched(bytes)` are the bytes that the simulator counts for it.
template <typename Seconds, typename Touched>
Rate calibrate_step(const Seconds& seconds, const Touched& touched, int ranks) {
  Rate rate;
  for (const std::int64_t bytes : sizes()) {
    if (bytes < Probes::row * element_bytes) continue;
    const double alone = seconds(bytes, 1);
    rate.measured.points.push_back({touched(bytes), alone});
    add_point(rate.node_measured, touched(bytes), shared_seconds(alone, seconds(bytes, ranks), ranks));
  }
  rate.measured = rising(rate.measured.points);
  if (!is_shared(rate.node_measured)) rate.node_measured = {};
  rate.bytes_per_second = rate.measured.points.back().bytes / rate.measured.points.back().seconds;
  return rate;
}

/// The mean relative distance of messages from the curve, at sizes between its points. Messages
/// without a measurable time are left out; 1 if none is left.
double residual(Probes& probes, const LinkModel& link, const Probes::Groups& groups) {
  double sum = 0;
  int count = 0;
  for (std::int64_t bytes = 96 << 10; bytes <= most_bytes; bytes *= 4) {
    const double seconds = probes.message_seconds(groups, bytes);
    if (!(seconds > 0)) continue;
    sum += std::abs(std::log(seconds / link.message_seconds(static_cast<double>(bytes))));
    ++count;
  }
  return count > 0 ? std::exp(sum / count) - 1 : 1;
}

/// Measures the links of a topology whose nodes are set, and returns their residual. If no two
/// ranks share a host, the link between hosts also stands for that within one, and its source says
/// so.
double calibrate_links(Topology& topology, Probes& probes, const Placement& placement, Transport moved_by) {
  const int ranks_per_node = topology.ranks_per_node;
  double error = 0;
  if (topology.nodes > 1) {
    const Probes::Groups rails = placement.across();
    topology.inter_node = calibrate_network(probes, rails, ranks_per_node);
    error = residual(probes, topology.inter_node, rails);
    topology.intra_node = topology.inter_node;
    topology.intra_node.source = "that between nodes, since no two ranks share one";
  }
  if (ranks_per_node < 2) return error;
  Probes::Groups groups = placement.within();
  if (topology.nodes == 1) {
    groups.assign(1, std::vector<int>(ranks_per_node));
    std::iota(groups[0].begin(), groups[0].end(), 0);
  }
  topology.intra_node = calibrate_link(probes, moved_by, groups, ranks_per_node);
  return std::max(error, residual(probes, topology.intra_node, groups));
}

/// Operations and bytes a second of each call of a kernel.
struct KernelRates {
  std::vector<double> flops, bytes;
};

/// The median of `rates` on the slowest rank, since a round waits for that rank; infinite if no
/// rank has any rate. Collective over the team.
double slowest_ranks(const std::vector<double>& rates, const Team& team) {
  return -team.max(rates.empty() ? -std::numeric_limits<double>::infinity() : -median(rates));
}

/// Runs the prepared rounds until clocks and caches have settled, and returns the median seconds of
/// a round. Collective over the team.
double warm_round_seconds(Executor& executor, const Team& team) {
  constexpr double settled = 0.2;  // seconds
  constexpr std::size_t fewest = 3, most = 200;
  std::vector<double> seconds;
  double sum = 0;
  while (seconds.size() < fewest || (sum < settled && seconds.size() < most)) {
    executor.synchronise();
    seconds.push_back(team.max(executor.run()));  // the same on all ranks
    sum += seconds.back();
  }
  return median(seconds);
}

/// The relative distance of a measured round from the simulated one; 0 if it cannot be simulated.
double round_error(const Topology& topology, const std::vector<Schedule>& schedules, double measured) {
  const ScheduleSource source{"calibration", static_cast<int>(schedules.size()),
                              [&schedules](int rank) { return schedules[rank]; }};
  if (unsupported_by_simulator(source, topology)) return 0;
  const double simulated = simulate(source, topology).seconds;
  return measured > 0 && simulated > 0 ? std::exp(std::abs(std::log(measured / simulated))) - 1 : 0;
}

}  // namespace

Topology calibrate(Executor& executor, const Team& team, const Placement& placement,
                   const std::string& stands_on) {
  const int ranks = placement.ranks(), ranks_per_node = placement.ranks_per_node();
  Probes probes(executor, team, ranks);
  Topology topology;
  topology.name = "this machine";
  topology.description = "the machine at hand, as measured";
  topology.nodes = ranks_per_node > 0 ? placement.hosts() : 1;
  topology.ranks_per_node = ranks_per_node > 0 ? ranks_per_node : ranks;
  topology.round_seconds = probes.round_seconds();
  topology.streams = probes.streams();
  topology.groups = executor.device() != nullptr && executor.device()->groups_messages();
  const Transport moved_by = executor.device() != nullptr ? Transport::wire : Transport::engine;
  const double error = calibrate_links(topology, probes, placement, moved_by);
  const auto copied = [](std::int64_t bytes) { return 2.0 * static_cast<double>(bytes); };
  const auto combined = [](std::int64_t bytes) {  // two states in, one out, and a decay a row
    return (3.0 + 1.0 / Probes::row) * static_cast<double>(bytes);
  };
  DeviceRates& device = topology.device;
  const int sharers = topology.ranks_per_node;
  device.copy =
      calibrate_step([&](auto bytes, int busy) { return probes.copy_seconds(bytes, busy); }, copied, sharers);
  device.combine = calibrate_step([&](auto bytes, int busy) { return probes.combine_seconds(bytes, busy); },
                                  combined, sharers);
  // Kernels get the rates of a combine until they are measured.
  device.kernel.bytes_per_second = device.combine.bytes_per_second;
  device.kernel.flops_per_second = device.combine.bytes_per_second * 2 / (3 * element_bytes);
  device.combine.flops_per_second = device.kernel.flops_per_second;
  if (const double products = measure_products(executor, team, ranks, ranks); products > 0)
    device.kernels[affine_combine] = {.flops_per_second = products,
                                      .bytes_per_second = no_limit,
                                      .source = "measured on all ranks at once"};
  topology.calibration = {.stands_on = stands_on,
                          .most_ranks = ranks,
                          .least_bytes = least_bytes,
                          .most_bytes = most_bytes,
                          .residual = error,
                          .most_nodes = topology.nodes};
  return topology;
}

Topology awaiting_kernels(const Topology& links, const std::string& machine, const std::string& stands_on) {
  Topology topology = links;
  topology.name = "links of " + links.name + ", kernels of " + machine;
  topology.description = "Kernels as measured on " + machine + ". All else: " + links.description;
  std::erase_if(topology.device.kernels, [](const auto& kernel) { return kernel.first != affine_combine; });
  const std::string& before = links.calibration.stands_on;
  topology.calibration.stands_on =
      "kernels: " + stands_on + "; all else: " + links.name + (before.empty() ? "" : ", " + before);
  topology.calibration.most_ranks = std::max(1, links.calibration.most_ranks);
  return topology;
}

void calibrate_kernels(Topology& topology, Executor& executor, const Team& team,
                       const std::vector<Schedule>& schedules, const std::string& source) {
  // All ranks' kernels: ranks run different ones, but must take part in the same collective calls.
  std::map<std::string, KernelRates> measured;
  for (const Schedule& schedule : schedules)
    for (const Kernel& kernel : schedule.kernels()) measured[kernel.name];
  executor.prepare(schedules);
  const double round_seconds = warm_round_seconds(executor, team);
  constexpr int traced_rounds = 5;
  for (int round = 0; round < traced_rounds; ++round) {
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
    if (std::isinf(flops)) continue;  // the executor cannot tell
    // A kernel without operations is limited by its bytes, any other by its operations.
    topology.device.kernels[name] = {.flops_per_second = flops > 0 ? flops : no_limit,
                                     .bytes_per_second = flops > 0 ? no_limit : std::max(bytes, 1.0),
                                     .source = source};
  }
  if (schedules.size() > 1) return;  // rounds of several ranks hold messages too
  double& residual = topology.calibration.residual;
  residual = std::max(residual, round_error(topology, schedules, round_seconds));
}

}  // namespace baton
