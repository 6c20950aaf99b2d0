// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/team.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>

#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

/// A number that two processes share exactly if they run on the same host. Hosts may have equal
/// names, and containers of one host other names: then they share no memory either.
std::uint64_t this_host() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return std::hash<std::string>{}(std::string(name.data()) + ":" + boot);
}

}  // namespace

Team Team::of_others() {
  Team others;
  others.is_member_ = false;
  return others;
}

double Team::min(double value) const {
  const std::vector<double> all = gather(value);
  return *std::min_element(all.begin(), all.end());
}

double Team::max(double value) const { return -min(-value); }

std::int64_t Team::sum(std::int64_t value) const {
  std::int64_t sum = 0;
  for (const std::int64_t one : gather(value)) sum += one;
  return sum;
}

void Team::sum(std::span<double> values) const {
  constexpr std::size_t piece = 1 << 16;  // so that many numbers of many ranks need little memory
  for (std::size_t from = 0; from < values.size(); from += piece) {
    const auto part = values.subspan(from, std::min(piece, values.size() - from));
    const auto rows = gather(std::vector<double>(part.begin(), part.end()));
    std::fill(part.begin(), part.end(), 0.0);
    for (const auto& row : rows)
      std::transform(row.begin(), row.end(), part.begin(), part.begin(), std::plus<>());
  }
}

bool Team::all(bool mine) const { return min(mine ? 1 : 0) > 0; }

std::string Team::first(const std::string& text) const {
  const std::vector<std::uint64_t> lengths = gather(static_cast<std::uint64_t>(text.size()));
  const auto speaker = std::find_if(lengths.begin(), lengths.end(), [](auto length) { return length > 0; });
  if (speaker == lengths.end() || !transport_) return text;
  const int from = static_cast<int>(speaker - lengths.begin());
  std::string agreed = rank() == from ? text : std::string(*speaker, ' ');
  transport_->broadcast(agreed.data(), agreed.size(), from);
  return agreed;
}

void Team::broadcast(void* data, std::size_t bytes) const {
  if (transport_) transport_->broadcast(data, bytes, 0);
}

std::vector<std::vector<double>> Team::gather(const std::vector<double>& mine) const {
  if (!transport_) return {mine};
  std::vector<double> all(mine.size() * static_cast<std::size_t>(size()));
  transport_->gather(all.data(), mine.data(), mine.size() * sizeof(double));
  std::vector<std::vector<double>> rows;
  for (auto row = all.begin(); rows.size() < static_cast<std::size_t>(size());
       row += static_cast<std::ptrdiff_t>(mine.size()))
    rows.emplace_back(row, row + static_cast<std::ptrdiff_t>(mine.size()));
  return rows;
}

std::vector<std::uint64_t> Team::gather_hosts() const { return gather(this_host()); }

Team::Host Team::host() const {
  const std::vector<std::uint64_t> hosts = gather_hosts();
  const auto mine = hosts.begin() + rank();
  return {.rank = static_cast<int>(std::count(hosts.begin(), mine, *mine)),
          .size = static_cast<int>(std::count(hosts.begin(), hosts.end(), *mine))};
}

void Team::barrier() const {
  if (transport_) transport_->barrier();
}

void Team::wait_asleep() const {
  if (transport_) transport_->barrier_asleep();
}

Team team_of_first(int members) {
  const Bootstrap* joined = the_bootstrap();
  const int running = joined == nullptr ? 1 : joined->size();
  if (members > running)
    throw UsageError(std::to_string(members) + " ranks need as many processes, and " +
                     std::to_string(running) + " run");
  return joined == nullptr ? Team() : joined->team(members);
}

}  // namespace baton
