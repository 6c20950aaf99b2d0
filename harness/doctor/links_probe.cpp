// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/links_probe.hpp"

#include <algorithm>
#include <utility>

#include "collectives/executors/timing.hpp"
#include "collectives/schedule/check.hpp"

namespace baton::doctor {
namespace {

/// All pairs of ranks; for many ranks only the pairs at distances 1, 2, 4, ...
std::vector<PairReadings> pairs_of(int ranks) {
  constexpr int most_complete = 40;
  std::vector<PairReadings> pairs;
  for (int from = 0; from < ranks; ++from)
    for (int apart = 1; from + apart<ranks; apart = ranks> most_complete ? 2 * apart : apart + 1)
      pairs.push_back({.from = from, .to = from + apart});
  return pairs;
}

/// Schedules with equal work: each rank applies a map of 16 MiB to a state 20 times.
std::vector<Schedule> equal_work(int ranks) {
  constexpr std::int64_t row = 128, rows = (16 << 20) / element_bytes / row;
  constexpr int times = 20;
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < ranks; ++rank) {
    Schedule& s = schedules.emplace_back(rank, ranks);
    const Map like{s.scratch("decay", rows), s.scratch("state", rows * row), row};
    const Map map = s.scratch_map("map", like);
    Map from = s.scratch_map("from", like).only_state(), to = s.scratch_map("to", like).only_state();
    for (int i = 0; i < times; ++i, std::swap(from, to)) s.combine(to, from, map);
  }
  check("equal work", schedules);
  return schedules;
}

}  // namespace

LinkProbe::LinkProbe(Team team, const ExecutorEntry& entry, int ranks) : team_(std::move(team)) {
  readings_.executor = device_.executor = entry.name;
  readings_.ranks = ranks;
  readings_.pairs = pairs_of(ranks);
  if (!team_.is_member()) return;
  executor_ = entry.make(ranks);
  readings_.is_device = has_device();
  readings_.large_bytes = readings_.is_device ? 16 << 20 : 1 << 20;
  if (has_device())
    for (const auto& [name, value] : executor_->device()->facts())
      if (name == "gpu") device_.name = value;
  if (ranks < 2) return;
  small_rounds_ = rounds_for(readings_.small_bytes);
  large_rounds_ = rounds_for(readings_.large_bytes);
}

/// The number of rounds that take about 20 ms, fewer where there are many pairs; the same on all
/// ranks.
int LinkProbe::rounds_for(std::int64_t bytes) {
  constexpr int trials = 5, least = 7, most = 200;
  const double enough = std::clamp(2.0 / static_cast<double>(readings_.pairs.size()), 0.002, 0.02);
  one_way(bytes, readings_.pairs.front(), trials);
  const double start = monotonic_seconds();
  one_way(bytes, readings_.pairs.front(), trials);
  const double each = team_.max((monotonic_seconds() - start) / trials);
  return static_cast<int>(std::clamp(enough / std::max(each, 1e-9), 1.0 * least, 1.0 * most));
}

/// The median one-way seconds over `rounds` rounds, after two rounds that connect the pair; the
/// same on all ranks.
double LinkProbe::one_way(std::int64_t bytes, const PairReadings& pair, int rounds) {
  constexpr int first_ones = 2;
  team_.wait_asleep();
  std::vector<double> seconds;
  for (int round = 0; round < first_ones + rounds; ++round) {
    const double one = executor_->one_way_seconds(bytes, pair.from, pair.to);
    if (round >= first_ones) seconds.push_back(one);
  }
  return team_.max(median(seconds));
}

void LinkProbe::measure() {
  if (!team_.is_member()) return;
  for (PairReadings& pair : readings_.pairs) {
    pair.latency_seconds.push_back(one_way(readings_.small_bytes, pair, small_rounds_));
    pair.large_seconds.push_back(one_way(readings_.large_bytes, pair, large_rounds_));
  }
  if (has_device()) work();
}

void LinkProbe::work() {
  constexpr int rounds = 20;
  executor_->prepare(equal_work(readings_.ranks));
  executor_->synchronise();
  executor_->run();
  double seconds = 0;
  for (int round = 0; round < rounds; ++round) {
    executor_->synchronise();
    seconds += executor_->run();
  }
  device_.work_seconds.push_back(seconds / rounds);
  for (const Reading& reading : executor_->device()->readings())
    device_.values[reading.name].push_back(reading.value);
}

}  // namespace baton::doctor
