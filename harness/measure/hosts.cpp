// SPDX-License-Identifier: Apache-2.0
// How clocks of hosts are compared:
//
//   for each other host: its first rank answers 100 messages of rank 0 with its clock
//     ahead = answer - (sent + received) / 2, at most half the way there and back wrong
//   the reading with the shortest way counts
#include "harness/measure/hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "collectives/executors/transport.hpp"
#include "harness/machine/placement.hpp"
#include "harness/measure/alpha_beta.hpp"

namespace baton {
namespace {

/// The clock offset with the least error of 100 readings; the same on all processes.
ClockOffset best_reading(Executor& executor, const Team& team, int from, int to) {
  constexpr int readings = 100;
  team.wait_asleep();
  ClockOffset best = executor.clock_offset(from, to);
  for (int i = 1; i < readings; ++i) {
    const ClockOffset reading = executor.clock_offset(from, to);
    if (reading.error_seconds < best.error_seconds) best = reading;
  }
  const auto row = team.gather({best.ahead_seconds, best.error_seconds})[from];
  return {row[0], row[1]};
}

/// How far the clock of each host is ahead of the first one's, and the largest error.
struct HostClocks {
  std::vector<double> ahead_seconds;
  double error_seconds = 0;
};

HostClocks compare_clocks(Executor& executor, const Team& team, const Placement& placement) {
  HostClocks clocks{{0}, 0};
  for (int host = 1; host < placement.hosts(); ++host) {
    const ClockOffset best = best_reading(executor, team, 0, placement.members(host).front());
    clocks.ahead_seconds.push_back(best.ahead_seconds);
    clocks.error_seconds = std::max(best.error_seconds, clocks.error_seconds);
  }
  return clocks;
}

/// The network interface that carries messages between the first two ranks of `groups`; `otherwise`
/// if none does, empty without groups. Collective over the team.
std::string carrier_of_messages(Executor& executor, const Team& team,
                                const std::vector<std::vector<int>>& groups, const std::string& otherwise) {
  if (groups.empty()) return {};
  constexpr int rounds = 8;
  constexpr std::int64_t bytes = 4 << 20;
  const int from = groups.front()[0], to = groups.front()[1];
  team.wait_asleep();
  const auto before = interface_bytes();
  for (int i = 0; i < rounds; ++i) executor.one_way_seconds(bytes, from, to);
  const std::string found = carrier(before, interface_bytes(), rounds * bytes);
  return team.first(team.rank() != from ? "" : found.empty() ? otherwise : found);
}

std::string link_words(double alpha, double beta, const std::string& where, const std::string& by) {
  return fmt::format("alpha {:.2f} us, beta {:.2f} GB/s {}{}", alpha * 1e6, beta * 1e-9, where,
                     by.empty() ? "" : " by " + by);
}

}  // namespace

std::optional<HostsOfRanks> hosts_of(Executor& executor, const Team& team, const Placement& placement,
                                     const StartSkew& skew) {
  if (placement.hosts() < 2) return std::nullopt;
  HostsOfRanks found{.hosts = placement.hosts(),
                     .placement = placement.words(),
                     .irregular = placement.irregular(),
                     .clock_error_seconds = skew.clock_error_seconds};
  if (executor.device() != nullptr) return found;
  found.within_by = carrier_of_messages(executor, team, placement.within(), "shared memory");
  found.between_by = carrier_of_messages(executor, team, placement.across(), "no interface");
  return found;
}

std::string transport_of(const std::string& executor_name, Executor& executor, const Team& team,
                         const Placement& placement) {
  const auto hosts = placement.within();
  if (hosts.empty() || executor.device() != nullptr) return {};
  const TransportName* said = transports().find(executor_name);
  const bool is_here = std::ranges::count(hosts.front(), team.rank()) > 0;
  const std::string mine = is_here && said != nullptr ? (*said)() : "";
  if (team.max(is_here && mine.empty() ? 1 : 0) > 0)
    return carrier_of_messages(executor, team, hosts, "shared memory");
  return team.first(mine);
}

std::string HostsOfRanks::words(const AlphaBeta& model) const {
  const std::string between =
      link_words(model.between_alpha_seconds, model.between_beta, "between hosts", between_by);
  if (within_by.empty()) return between;
  return link_words(model.alpha_seconds, model.beta, "in a host", within_by) + "; " + between;
}

StartSkew measure_start_skew(Executor& executor, const Team& team, const Placement& placement) {
  constexpr int starts = 100;
  const HostClocks clocks = compare_clocks(executor, team, placement);
  for (const double ahead : clocks.ahead_seconds)
    if (std::isnan(ahead)) return {std::numeric_limits<double>::quiet_NaN(), 0};
  std::vector<double> mine(starts);
  for (double& start : mine) {
    executor.synchronise();
    start = monotonic_seconds() - clocks.ahead_seconds[placement.host_of(team.rank())];
  }
  const auto all = team.gather(mine);
  std::vector<double> skews(starts);
  for (int i = 0; i < starts; ++i) {
    const auto [first, last] =
        std::minmax_element(all.begin(), all.end(), [i](auto& a, auto& b) { return a[i] < b[i]; });
    skews[i] = (*last)[i] - (*first)[i];
  }
  return {median(skews), clocks.error_seconds};
}

double timer_overhead_seconds() {
  constexpr int readings = 10000;
  const double start = monotonic_seconds();
  double last = start;
  for (int i = 0; i < readings; ++i) last = monotonic_seconds();
  return (last - start) / readings;
}

}  // namespace baton
