// SPDX-License-Identifier: Apache-2.0
// Ping-pongs within and between hosts.
#include "harness/measure/alpha_beta.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "collectives/executors/timing.hpp"
#include "harness/machine/placement.hpp"
#include "harness/measure/probes.hpp"

namespace baton {
namespace {

/// The least one-way seconds of a message of `bytes` between two ranks, the same on all processes.
/// The least is taken, since a bound must not contain disturbances.
double one_way_seconds(Executor& executor, const Team& team, std::int64_t bytes, int from, int to) {
  const int rounds = bytes < 4096 ? 200 : 20;
  team.wait_asleep();
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < rounds; ++i) least = std::min(least, executor.one_way_seconds(bytes, from, to));
  return team.max(least);
}

using Pairs = std::vector<std::pair<int, int>>;

/// The measured pairs of neighbours in the groups: all pairs, or 8 spread over them.
Pairs sampled_neighbours(const Probes::Groups& groups) {
  constexpr std::size_t most = 8;
  Pairs all, sampled;
  for (const std::vector<int>& group : groups)
    for (std::size_t i = 0; i + 1 < group.size(); ++i) all.emplace_back(group[i], group[i + 1]);
  const std::size_t count = std::min(all.size(), most);
  for (std::size_t i = 0; i < count; ++i) sampled.push_back(all[i * all.size() / count]);
  return sampled;
}

double median_over_pairs(Executor& executor, const Team& team, const Pairs& pairs, std::int64_t bytes) {
  std::vector<double> seconds;
  for (const auto& [from, to] : pairs) seconds.push_back(one_way_seconds(executor, team, bytes, from, to));
  return median(seconds);
}

AlphaBeta measure_messages(Executor& executor, const Team& team, const Pairs& pairs) {
  const double alpha = median_over_pairs(executor, team, pairs, 8);
  if (!std::isfinite(alpha)) return {};  // no message took longer than an empty round
  double beta = 1;
  constexpr std::int64_t largest = 4 << 20;
  for (const std::int64_t bytes :
       {std::int64_t{64 << 10}, std::int64_t{256 << 10}, std::int64_t{1 << 20}, largest}) {
    const double seconds = median_over_pairs(executor, team, pairs, bytes);
    // If alpha is most of the time, the remainder is noise. The largest size is always used, and by
    // its whole time where noise made alpha longer than that.
    if (!std::isfinite(seconds) || seconds <= 0) continue;
    if (seconds > 2 * alpha || bytes == largest)
      beta = std::max(beta, static_cast<double>(bytes) / (seconds > alpha ? seconds - alpha : seconds));
  }
  return {alpha, beta};
}

}  // namespace

int AlphaBeta::best_blocks(int ranks, std::int64_t bytes, std::int64_t most) const {
  double alpha = message_beta > 0 ? message_alpha_seconds : alpha_seconds;
  double rate = message_beta > 0 ? message_beta : beta;
  if (between_beta > 0) alpha = between_alpha_seconds, rate = between_beta;
  if (ranks < 3 || alpha <= 0) return 1;
  const double best = std::sqrt((ranks - 2) * static_cast<double>(bytes) / (alpha * rate));
  return static_cast<int>(std::clamp(std::round(best), 1.0, static_cast<double>(most)));
}

AlphaBeta measure_alpha_beta(Executor& executor, const Team& team, const Placement& placement) {
  AlphaBeta model;
  Device* device = executor.device();
  if (device != nullptr && device->is_shared()) return model;
  const Pairs within = sampled_neighbours(placement.within());
  const Pairs between = sampled_neighbours(placement.across());
  if (!within.empty()) model = measure_messages(executor, team, within);
  if (!between.empty()) {
    const AlphaBeta found = measure_messages(executor, team, between);
    if (within.empty()) model = found;
    model.between_alpha_seconds = found.alpha_seconds;
    model.between_beta = found.beta;
  }
  if (device == nullptr) return model;
  const auto limits = device->measure_limits();
  model.floor_seconds = limits.floor_seconds;
  if (limits.beta <= 0) return model;
  AlphaBeta wire = model;
  wire.message_alpha_seconds = model.alpha_seconds;
  wire.message_beta = model.beta;
  wire.alpha_seconds = limits.alpha_seconds;
  wire.beta = limits.beta;
  return wire;
}

AlphaBeta best_of(AlphaBeta link, const AlphaBeta& again) {
  link.floor_seconds = std::min(link.floor_seconds, again.floor_seconds);
  link.alpha_seconds = std::min(link.alpha_seconds, again.alpha_seconds);
  link.beta = std::max(link.beta, again.beta);
  link.between_alpha_seconds = std::min(link.between_alpha_seconds, again.between_alpha_seconds);
  link.between_beta = std::max(link.between_beta, again.between_beta);
  return link;
}

double measure_products(Executor& executor, const Team& team, int ranks, int busy) {
  constexpr std::int64_t heads_on_device = 64, heads_on_host = 4;
  Device* const device = executor.device();
  if (device != nullptr && device->is_shared()) return 0;
  return Probes(executor, team, ranks)
      .product_flops_per_second(device != nullptr ? heads_on_device : heads_on_host, busy);
}

}  // namespace baton
