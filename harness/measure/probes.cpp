// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/probes.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "collectives/executors/timing.hpp"
#include "collectives/schedule/check.hpp"

namespace baton {
namespace {

/// Repetitions in the two lengths of a probe with messages, copies or combines of `bytes`. Large
/// ones take far longer than the part that both lengths have in common, so that few are enough.
struct Lengths {
  explicit Lengths(std::int64_t bytes) : many(bytes < large ? 10 : 4) {}

  static constexpr std::int64_t large = 1 << 20;
  static constexpr int few = 2;  // as many as are under way at once
  int many;
};

/// The place of `rank`, 0 or 1, among the first two ranks of the first group, and the other rank;
/// -1 for ranks that are neither.
std::pair<int, int> place_in_pair(const Probes::Groups& groups, int rank) {
  const int first = groups.front()[0], second = groups.front()[1];
  return rank == first ? std::pair(0, second) : rank == second ? std::pair(1, first) : std::pair(-1, -1);
}

/// Seconds that are the difference of two readings; not a number if noise made it negative.
double known(double difference) {
  return difference >= 0 ? difference : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

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
  return known(least_round(text, times.many) - least_round(text, times.few)) / (times.many - times.few);
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
  if (streams()) return known(least_round(ping_pong, 1) - round_seconds());
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

double Probes::product_flops_per_second(std::int64_t heads, int busy) {
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
