// SPDX-License-Identifier: Apache-2.0
// What is measured of several hosts beside their links: what carries messages, and how far apart
// clocks are, which tells how far apart ranks start a round.
#pragma once

#include <optional>
#include <string>

namespace baton {

class Executor;
class Placement;
class Team;
struct AlphaBeta;

/// How far apart the ranks start a round.
struct StartSkew {
  /// The median over 100 starts of last minus first, in seconds. Not a number if it is not known.
  double seconds = 0;
  /// The largest error of the differences of the hosts' clocks, in seconds; 0 on a single host.
  double clock_error_seconds = 0;
};

/// Measures how far apart the ranks leave `Executor::synchronise`. The clocks of other hosts are
/// compared with rank 0's: the fastest of 100 round trips gives the difference with the least
/// error.
/// Collective over the team.
StartSkew measure_start_skew(Executor& executor, const Team& team, const Placement& placement);

/// Facts about the hosts of ranks that run on several.
struct HostsOfRanks {
  int hosts = 0;
  /// The texts of Placement::words and Placement::irregular.
  std::string placement, irregular;
  /// The network interfaces that carry messages within a host and between hosts, as their counters
  /// of bytes show; "shared memory" if none does within a host, "no interface" if none does between
  /// hosts, as past the kernel. Empty if there are no such messages, or on devices.
  std::string within_by, between_by;
  double clock_error_seconds = 0;

  /// Latencies and rates of the links within and between hosts in words, with what carries
  /// messages.
  std::string words(const AlphaBeta& model) const;
};

/// Finds the hosts of the ranks and what carries their messages; nothing on a single host.
/// Collective over the team.
std::optional<HostsOfRanks> hosts_of(Executor& executor, const Team& team, const Placement& placement,
                                     const StartSkew& skew);

/// What carries messages between ranks of the first host that has several, as the library of
/// `executor_name` says, or else the counters of interfaces: "shared memory", "sockets" or the name
/// of an interface. Empty where no host has several, and on devices. Collective over the team.
std::string transport_of(const std::string& executor_name, Executor& executor, const Team& team,
                         const Placement& placement);

/// Seconds that one reading of the clock takes.
double timer_overhead_seconds();

}  // namespace baton
