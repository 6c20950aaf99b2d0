// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace baton {
namespace {

/// A text of ascending ranks, such as "0-2 5".
std::string ranges(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : " ", ranks[i]);
    if (last > i) text += fmt::format("-{}", ranks[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace

Placement::Placement(const std::vector<std::uint64_t>& numbers) {
  std::map<std::uint64_t, int> hosts;
  for (int rank = 0; rank < static_cast<int>(numbers.size()); ++rank) {
    const auto [host, is_new] = hosts.try_emplace(numbers[rank], this->hosts());
    if (is_new) members_.emplace_back();
    host_of_.push_back(host->second);
    members_[host->second].push_back(rank);
  }
}

int Placement::ranks_per_node() const {
  if (hosts() < 2) return 0;
  const int full = static_cast<int>(members_[0].size());
  for (int rank = 0; rank < ranks(); ++rank)
    if (host_of_[rank] != rank / full) return 0;
  return full;
}

std::string Placement::words() const {
  const int full = ranks_per_node();
  if (hosts() == 1) return "1 host";
  if (full > 0 && ranks() % full == 0) return fmt::format("{} hosts of {}", hosts(), full);
  constexpr std::size_t most = 8;
  std::string lists;
  for (std::size_t host = 0; host < std::min(members_.size(), most); ++host)
    lists += (host == 0 ? "" : ", ") + ranges(members_[host]);
  return fmt::format("{} hosts (ranks {}{})", hosts(), lists, members_.size() > most ? ", ..." : "");
}

std::string Placement::irregular() const {
  if (hosts() < 2 || ranks_per_node() > 0) return {};
  return fmt::format(
      "{}: they do not fill equal hosts one after the other, so schedules take all ranks as one node; "
      "mpirun --map-by slot and srun --distribution=block fill hosts",
      words());
}

std::vector<std::vector<int>> Placement::within() const {
  std::vector<std::vector<int>> groups;
  std::copy_if(members_.begin(), members_.end(), std::back_inserter(groups),
               [](const std::vector<int>& ranks) { return ranks.size() > 1; });
  return groups;
}

std::vector<std::vector<int>> Placement::across() const {
  std::vector<std::vector<int>> groups;
  for (std::size_t place = 0; hosts() > 1; ++place) {
    std::vector<int> group;
    for (const std::vector<int>& ranks : members_)
      if (place < ranks.size()) group.push_back(ranks[place]);
    if (group.size() < 2) break;
    groups.push_back(group);
  }
  return groups;
}

Placement placement_of(const Team& team, int ranks) {
  return Placement(team.size() == ranks ? team.gather_hosts() : std::vector<std::uint64_t>(ranks, 0));
}

std::map<std::string, std::int64_t> interface_bytes() {
  std::map<std::string, std::int64_t> bytes;
  std::ifstream file("/proc/thread-self/net/dev");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;  // the titles
    std::istringstream columns(line.substr(colon + 1));
    std::int64_t received = 0, sent = 0, other = 0;
    columns >> received;
    for (int column = 1; column < 8; ++column) columns >> other;
    columns >> sent;
    bytes[line.substr(line.find_first_not_of(' '), colon - line.find_first_not_of(' '))] = received + sent;
  }
  return bytes;
}

std::string carrier(const std::map<std::string, std::int64_t>& before,
                    const std::map<std::string, std::int64_t>& after, std::int64_t bytes) {
  std::string name;
  for (const auto& [interface, count] : after) {
    const auto earlier = before.find(interface);
    const std::int64_t carried = count - (earlier == before.end() ? 0 : earlier->second);
    if (carried >= bytes) name = interface, bytes = carried + 1;
  }
  return name;
}

}  // namespace baton
