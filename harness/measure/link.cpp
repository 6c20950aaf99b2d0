// SPDX-License-Identifier: Apache-2.0
// Ping-pongs, start skew and the clock's own cost.
#include "harness/measure/link.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include "harness/measure/statistics.hpp"
#include "harness/process/machine.hpp"

namespace baton {
namespace {

using Clock = std::chrono::steady_clock;

double now_seconds() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

/// The least one-way time of `bytes` between two ranks, the same on all. The least, for it stands in a bound: whatever
/// else the machine did meanwhile is no property of the link.
double one_way_seconds(Executor& executor, const Team& team, std::int64_t bytes, int from, int to) {
  const int rounds = bytes < 4096 ? 200 : 20;
  team.wait_asleep();
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < rounds; ++i) least = std::min(least, executor.one_way_seconds(bytes, from, to));
  return team.max(least);
}

/// Neighbours whose links are measured: all, or 8 spread over the ranks.
std::vector<int> sampled_neighbours(int ranks) {
  constexpr int most = 8;
  std::vector<int> firsts;
  const int pairs = ranks - 1, count = std::min(pairs, most);
  for (int i = 0; i < count; ++i) firsts.push_back(i * pairs / count);
  return firsts;
}

double median_over_pairs(Executor& executor, const Team& team, int ranks, std::int64_t bytes) {
  std::vector<double> seconds;
  for (int first : sampled_neighbours(ranks))
    seconds.push_back(one_way_seconds(executor, team, bytes, first, first + 1));
  return median(seconds);
}

Link measure_messages(Executor& executor, const Team& team, int ranks) {
  const double alpha = median_over_pairs(executor, team, ranks, 8);
  double beta = 1;
  constexpr std::int64_t largest = 4 << 20;
  for (const std::int64_t bytes :
       {std::int64_t{64 << 10}, std::int64_t{256 << 10}, std::int64_t{1 << 20}, largest}) {
    const double seconds = median_over_pairs(executor, team, ranks, bytes);
    // Where alpha is most of the time, the rest is noise; but the largest must do.
    if (seconds > 2 * alpha || (bytes == largest && seconds > alpha))
      beta = std::max(beta, static_cast<double>(bytes) / (seconds - alpha));
  }
  return {alpha, beta};
}

}  // namespace

int Link::best_blocks(int ranks, std::int64_t bytes, std::int64_t most) const {
  const double alpha = message_beta > 0 ? message_alpha_seconds : alpha_seconds;
  const double rate = message_beta > 0 ? message_beta : beta;
  if (ranks < 3 || alpha <= 0) return 1;
  const double best = std::sqrt((ranks - 2) * static_cast<double>(bytes) / (alpha * rate));
  return static_cast<int>(std::clamp(std::round(best), 1.0, static_cast<double>(most)));
}

Link measure_link(Executor& executor, const Team& team, int ranks) {
  Link link;
  if (ranks > 1) link = measure_messages(executor, team, ranks);
  Device* device = executor.device();
  if (device == nullptr) return link;
  const HardwareLimits wire = device->measure_limits();
  link.floor_seconds = wire.floor_seconds;
  if (wire.beta <= 0) return link;
  return {wire.alpha_seconds, wire.beta, wire.floor_seconds, link.alpha_seconds, link.beta};
}

double measure_start_skew(Executor& executor, const Team& team) {
  constexpr int starts = 100;
  for (const auto& row : team.gather({static_cast<double>(host_number())}))
    if (row[0] != host_number()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> mine(starts);
  for (double& start : mine) {
    executor.synchronise();
    start = now_seconds();
  }
  const auto all = team.gather(mine);
  std::vector<double> skews(starts);
  for (int i = 0; i < starts; ++i) {
    const auto [first, last] =
        std::minmax_element(all.begin(), all.end(), [i](auto& a, auto& b) { return a[i] < b[i]; });
    skews[i] = (*last)[i] - (*first)[i];
  }
  return median(skews);
}

double timer_overhead_seconds() {
  constexpr int readings = 10000;
  const double start = now_seconds();
  double last = start;
  for (int i = 0; i < readings; ++i) last = now_seconds();
  return (last - start) / readings;
}

}  // namespace baton
