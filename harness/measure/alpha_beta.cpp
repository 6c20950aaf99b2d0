// SPDX-License-Identifier: Apache-2.0
// Ping-pongs within and between hosts, and probes: each probe is a schedule that repeats one
// operation, so that two lengths of it give the cost of one repetition.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "collectives/executors/timing.hpp"
#include "collectives/schedule/check.hpp"
#include "harness/measure/machine.hpp"
#include "harness/measure/samples.hpp"

namespace baton {
namespace {

/// The least one-way time of `bytes` between two ranks, the same on all processes. It is used for a
/// bound, so that disturbances must not count.
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
  double beta = 1;
  constexpr std::int64_t largest = 4 << 20;
  for (const std::int64_t bytes :
       {std::int64_t{64 << 10}, std::int64_t{256 << 10}, std::int64_t{1 << 20}, largest}) {
    const double seconds = median_over_pairs(executor, team, pairs, bytes);
    // If alpha is most of the time, the remainder is noise. The largest size is always used.
    if (seconds > 2 * alpha || (bytes == largest && seconds > alpha))
      beta = std::max(beta, static_cast<double>(bytes) / (seconds - alpha));
  }
  return {alpha, beta};
}

/// Repetitions in the two lengths of a probe of messages, copies or combines of `bytes`. Large ones
/// take longer than what both lengths have in common by far, so that few of them tell enough.
struct Lengths {
  explicit Lengths(std::int64_t bytes) : many(bytes < large ? 10 : 4) {}

  static constexpr std::int64_t large = 1 << 20;
  static constexpr int few = 2;  // as many as are under way at once
  int many;
};

/// The place of `rank` among the first two of the first group, and the other one; -1 for others.
std::pair<int, int> place_in_pair(const Probes::Groups& groups, int rank) {
  const int first = groups.front()[0], second = groups.front()[1];
  return rank == first ? std::pair(0, second) : rank == second ? std::pair(1, first) : std::pair(-1, -1);
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

double measure_products(Executor& executor, const Team& team, int ranks, int busy) {
  constexpr std::int64_t heads_on_device = 64, heads_on_host = 4;
  Device* const device = executor.device();
  if (device != nullptr && device->is_shared()) return 0;
  return Probes(executor, team, ranks)
      .product_flops_a_second(device != nullptr ? heads_on_device : heads_on_host, busy);
}

double Probes::least_round(const Text& text, int times) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < ranks_; ++rank) {
    schedules.emplace_back(rank, ranks_);
    text(schedules.back(), times);
  }
  check("probe", schedules);
  executor_.prepare(std::move(schedules));
  constexpr int warm_up = 3, fewest = 5, rounds = 15;
  // Seconds: large messages vary less, and ranks that share cores wait long for one another between
  // rounds too. Many rounds of either take minutes.
  constexpr double enough = 0.1;
  double least = std::numeric_limits<double>::infinity(), sum = 0;
  for (int i = 0; i < warm_up + rounds && (i < warm_up + fewest || sum < enough); ++i) {
    const double before = monotonic_seconds();
    executor_.synchronise();
    const double mine = executor_.run(), slowest = team_.max(mine);
    sum += team_.max(std::max(mine, monotonic_seconds() - before));
    if (i >= warm_up) least = std::min(least, slowest);
  }
  return least;
}

double Probes::seconds_of_one(std::int64_t bytes, const Text& text) {
  const Lengths times(bytes);
  const double difference = least_round(text, times.many) - least_round(text, times.few);
  return std::max(0.0, difference) / (times.many - times.few);
}

double Probes::message_seconds(const Groups& groups, std::int64_t bytes) {
  const auto ping_pong = [&groups, bytes](Schedule& s, int times) {
    const Slice message = s.scratch("message", bytes / element_bytes);
    const auto [place, peer] = place_in_pair(groups, s.rank());
    for (int i = 0; i < times && peer >= 0; ++i) {
      const bool serves = place == i % 2;
      if (serves) s.send(peer, message);
      if (!serves) s.recv(message, peer);
    }
  };
  if (streams()) return std::max(0.0, least_round(ping_pong, 1) - round_seconds());
  return seconds_of_one(bytes, ping_pong);
}

double Probes::exchange_seconds(const Groups& groups, std::int64_t bytes) {
  const auto swap = [&groups, bytes](Schedule& s, int times) {
    const Slice first = s.scratch("first", bytes / element_bytes);
    const Slice second = s.scratch("second", bytes / element_bytes);
    const int peer = place_in_pair(groups, s.rank()).second;
    for (int i = 0; i < times && peer >= 0; ++i) {  // each send waits for the receive before it
      s.send(peer, i % 2 == 0 ? first : second);
      s.recv(i % 2 == 0 ? second : first, peer);
    }
  };
  return seconds_of_one(bytes, swap);
}

double Probes::shift_seconds(const Groups& groups, std::int64_t bytes, int at_once) {
  const auto shift = [&groups, bytes, at_once](Schedule& s, int times) {
    const std::int64_t count = bytes / element_bytes;
    const Slice first = s.scratch("first", count * at_once), second = s.scratch("second", count * at_once);
    const auto part = [&](const Slice& of, int i) { return of.part(i % at_once * count, count); };
    for (const std::vector<int>& group : groups) {
      const auto at = std::find(group.begin(), group.end(), s.rank());
      if (at == group.end()) continue;
      const int next = at + 1 == group.end() ? group.front() : *(at + 1);
      const int before = at == group.begin() ? group.back() : *(at - 1);
      for (int i = 0; i < times; ++i) {  // a send waits for what came `at_once` receives ago
        const bool is_even = i / at_once % 2 == 0;
        s.send(next, part(is_even ? first : second, i));
        s.recv(part(is_even ? second : first, i), before);
      }
    }
  };
  return seconds_of_one(bytes, shift);
}

double Probes::combine_seconds(std::int64_t bytes, int busy) {
  const std::int64_t rows = std::max<std::int64_t>(1, bytes / element_bytes / row);
  const auto apply = [rows, busy](Schedule& s, int times) {
    const Map like{s.scratch("decay", rows), s.scratch("state", rows * row), row};
    const Map own = s.scratch_map("own", like);
    Map from = s.scratch_map("a", like).only_state(), to = s.scratch_map("b", like).only_state();
    for (int i = 0; i < times && s.rank() < busy; ++i, std::swap(from, to)) s.combine(to, from, own);
  };
  return seconds_of_one(bytes, apply);
}

double Probes::product_flops_a_second(std::int64_t heads, int busy) {
  const MapForm form{.kind = MapKind::affine, .share = row};
  double flops = 0;
  const double seconds = seconds_of_one(heads * row * row * element_bytes, [&](Schedule& s, int times) {
    const Map own = s.scratch_map("own", {{}, {0, 0, heads * row * row}, row, form});
    Map from = s.scratch_map("a", own).only_state(), to = s.scratch_map("b", own).only_state();
    for (int i = 0; i < times && s.rank() < busy; ++i, std::swap(from, to)) s.combine(to, from, own);
    if (s.rank() == 0) flops = s.steps().front().combine_flops();
  });
  return seconds > 0 ? flops / seconds : 0;
}

double Probes::copy_seconds(std::int64_t bytes, int busy) {
  const auto copy = [bytes, busy](Schedule& s, int times) {
    Slice from = s.scratch("a", bytes / element_bytes), to = s.scratch("b", bytes / element_bytes);
    for (int i = 0; i < times && s.rank() < busy; ++i, std::swap(from, to)) s.copy(to, from);
  };
  return seconds_of_one(bytes, copy);
}

double Probes::round_seconds() {
  const auto small = [](Schedule& s, int) { s.copy(s.scratch("a", 1), s.scratch("b", 1)); };
  return least_round(small, 1);
}

}  // namespace baton
