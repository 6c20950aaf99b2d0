// SPDX-License-Identifier: Apache-2.0
// Probes: each a schedule that repeats one thing, so that two lengths of it tell what one more costs.
#include "harness/measure/probes.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "collectives/schedule/check.hpp"

namespace baton {
namespace {

constexpr int few = 2, many = 10;

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
  constexpr double enough = 0.1;  // seconds: large messages are steadier, and many of them take minutes
  double least = std::numeric_limits<double>::infinity(), sum = 0;
  for (int i = 0; i < warm_up + rounds && (i < warm_up + fewest || sum < enough); ++i) {
    executor_.synchronise();
    const double slowest = team_.max(executor_.run());
    sum += slowest;
    if (i >= warm_up) least = std::min(least, slowest);
  }
  return least;
}

double Probes::seconds_of_one(const Text& text) {
  const double difference = least_round(text, many) - least_round(text, few);
  return std::max(0.0, difference) / (many - few);
}

double Probes::message_seconds(std::int64_t bytes) {
  const auto there_and_back = [bytes](Schedule& s, int times) {
    const Slice ball = s.scratch("ball", bytes / element_bytes);
    for (int i = 0; i < times && s.rank() < 2; ++i) {
      const bool serves = s.rank() == i % 2;
      if (serves) s.send(1 - s.rank(), ball);
      if (!serves) s.recv(ball, 1 - s.rank());
    }
  };
  if (streams()) return std::max(0.0, least_round(there_and_back, 1) - round_seconds());
  return seconds_of_one(there_and_back);
}

double Probes::exchange_seconds(std::int64_t bytes) {
  const auto swap = [bytes](Schedule& s, int times) {
    const Slice first = s.scratch("first", bytes / element_bytes);
    const Slice second = s.scratch("second", bytes / element_bytes);
    for (int i = 0; i < times && s.rank() < 2; ++i) {  // what came is sent next: one waits for the other
      s.send(1 - s.rank(), i % 2 == 0 ? first : second);
      s.recv(i % 2 == 0 ? second : first, 1 - s.rank());
    }
  };
  return seconds_of_one(swap);
}

double Probes::shift_seconds(std::int64_t bytes) {
  const auto shift = [bytes](Schedule& s, int times) {
    const Slice first = s.scratch("first", bytes / element_bytes);
    const Slice second = s.scratch("second", bytes / element_bytes);
    const int P = s.ranks(), r = s.rank();
    for (int i = 0; i < times; ++i) {
      s.send((r + 1) % P, i % 2 == 0 ? first : second);
      s.recv(i % 2 == 0 ? second : first, (r + P - 1) % P);
    }
  };
  return seconds_of_one(shift);
}

double Probes::combine_seconds(std::int64_t bytes, int busy) {
  const std::int64_t rows = std::max<std::int64_t>(1, bytes / element_bytes / row);
  const auto apply = [rows, busy](Schedule& s, int times) {
    const Map like{s.scratch("decay", rows), s.scratch("state", rows * row), row};
    const Map own = s.scratch_map("own", like);
    Map from = s.scratch_map("a", like).only_state(), to = s.scratch_map("b", like).only_state();
    for (int i = 0; i < times && s.rank() < busy; ++i, std::swap(from, to)) s.combine(to, from, own);
  };
  return seconds_of_one(apply);
}

double Probes::copy_seconds(std::int64_t bytes, int busy) {
  const auto copy = [bytes, busy](Schedule& s, int times) {
    Slice from = s.scratch("a", bytes / element_bytes), to = s.scratch("b", bytes / element_bytes);
    for (int i = 0; i < times && s.rank() < busy; ++i, std::swap(from, to)) s.copy(to, from);
  };
  return seconds_of_one(copy);
}

double Probes::round_seconds() {
  const auto small = [](Schedule& s, int) { s.copy(s.scratch("a", 1), s.scratch("b", 1)); };
  return least_round(small, 1);
}

}  // namespace baton
