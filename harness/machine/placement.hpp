// SPDX-License-Identifier: Apache-2.0
// How the ranks of a team lie on hosts, found by asking all of them, and what carries the bytes of
// a host to others.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collectives/executors/team.hpp"

namespace baton {

/// The hosts of the ranks, counted from 0 in the order of their first ranks.
class Placement {
 public:
  /// `numbers[r]` is any number that rank r shares exactly with the ranks of its host.
  explicit Placement(const std::vector<std::uint64_t>& numbers);

  int ranks() const { return static_cast<int>(host_of_.size()); }
  int hosts() const { return static_cast<int>(members_.size()); }
  int host_of(int rank) const { return host_of_[rank]; }
  /// The ranks of a host, ascending.
  const std::vector<int>& members(int host) const { return members_[host]; }

  /// The ranks on a full host if ranks fill hosts one after the other, equally many on each but the
  /// last, which may have fewer. 0 on a single host, and for any other placement.
  int ranks_per_node() const;

  /// The hosts and their ranks in words, such as "4 hosts of 2", or "3 hosts (ranks 0-2, 3, 4-7)".
  std::string words() const;

  /// The reason why schedules take several hosts as one node; empty where they need not.
  std::string irregular() const;

  /// The ranks of each host that has two or more.
  std::vector<std::vector<int>> within() const;
  /// The ranks with the same place on their hosts, for each place that two hosts or more have.
  std::vector<std::vector<int>> across() const;

 private:
  std::vector<int> host_of_;
  std::vector<std::vector<int>> members_;
};

/// The placement of `ranks` ranks: of a team with a process for each, or all in one process.
/// Collective over the team.
Placement placement_of(const Team& team, int ranks);

/// Bytes that each network interface of this host has carried in both directions, by name.
std::map<std::string, std::int64_t> interface_bytes();

/// The interface that carried most between two readings, if that was at least `bytes`; empty if
/// none did, as where messages go through memory or past the kernel.
std::string carrier(const std::map<std::string, std::int64_t>& before,
                    const std::map<std::string, std::int64_t>& after, std::int64_t bytes);

}  // namespace baton
