// SPDX-License-Identifier: Apache-2.0
// Ping-pongs, start skew, the cost of the clock, and probes: each probe is a schedule that repeats
// one operation, so that two lengths of it give the cost of one repetition.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "collectives/schedule/check.hpp"
#include "harness/measure/machine.hpp"
#include "harness/measure/samples.hpp"
#include "harness/process/system.hpp"

namespace baton {
namespace {

using Clock = std::chrono::steady_clock;

double now_seconds() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

/// The least one-way time of `bytes` between two ranks, the same on all processes. It is used for a
/// bound, so that disturbances must not count.
double one_way_seconds(Executor& executor, const Team& team, std::int64_t bytes, int from, int to) {
  const int rounds = bytes < 4096 ? 200 : 20;
  team.wait_asleep();
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < rounds; ++i) least = std::min(least, executor.one_way_seconds(bytes, from, to));
  return team.max(least);
}

/// The first ranks of the measured pairs of neighbours: all pairs, or 8 spread over the ranks.
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

AlphaBeta measure_messages(Executor& executor, const Team& team, int ranks) {
  const double alpha = median_over_pairs(executor, team, ranks, 8);
  double beta = 1;
  constexpr std::int64_t largest = 4 << 20;
  for (const std::int64_t bytes :
       {std::int64_t{64 << 10}, std::int64_t{256 << 10}, std::int64_t{1 << 20}, largest}) {
    const double seconds = median_over_pairs(executor, team, ranks, bytes);
    // If alpha is most of the time, the remainder is noise. The largest size is always used.
    if (seconds > 2 * alpha || (bytes == largest && seconds > alpha))
      beta = std::max(beta, static_cast<double>(bytes) / (seconds - alpha));
  }
  return {alpha, beta};
}

constexpr int few = 2, many = 10;  // repetitions of a probe

}  // namespace

int AlphaBeta::best_blocks(int ranks, std::int64_t bytes, std::int64_t most) const {
  const double alpha = message_beta > 0 ? message_alpha_seconds : alpha_seconds;
  const double rate = message_beta > 0 ? message_beta : beta;
  if (ranks < 3 || alpha <= 0) return 1;
  const double best = std::sqrt((ranks - 2) * static_cast<double>(bytes) / (alpha * rate));
  return static_cast<int>(std::clamp(std::round(best), 1.0, static_cast<double>(most)));
}

AlphaBeta measure_alpha_beta(Executor& executor, const Team& team, int ranks) {
  AlphaBeta model;
  Device* device = executor.device();
  if (device != nullptr && device->is_shared()) return model;
  if (ranks > 1) model = measure_messages(executor, team, ranks);
  if (device == nullptr) return model;
  const auto limits = device->measure_limits();
  model.floor_seconds = limits.floor_seconds;
  if (limits.beta <= 0) return model;
  return {limits.alpha_seconds, limits.beta, limits.floor_seconds, model.alpha_seconds, model.beta};
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

double Probes::least_round(const Text& text, int times) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < ranks_; ++rank) {
    schedules.emplace_back(rank, ranks_);
    text(schedules.back(), times);
  }
  check("probe", schedules);
  executor_.prepare(std::move(schedules));
  constexpr int warm_up = 3, fewest = 5, rounds = 15;
  // Seconds: large messages vary less, and many of them take minutes.
  constexpr double enough = 0.1;
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
  const auto ping_pong = [bytes](Schedule& s, int times) {
    const Slice message = s.scratch("message", bytes / element_bytes);
    for (int i = 0; i < times && s.rank() < 2; ++i) {
      const bool serves = s.rank() == i % 2;
      if (serves) s.send(1 - s.rank(), message);
      if (!serves) s.recv(message, 1 - s.rank());
    }
  };
  if (streams()) return std::max(0.0, least_round(ping_pong, 1) - round_seconds());
  return seconds_of_one(ping_pong);
}

double Probes::exchange_seconds(std::int64_t bytes) {
  const auto swap = [bytes](Schedule& s, int times) {
    const Slice first = s.scratch("first", bytes / element_bytes);
    const Slice second = s.scratch("second", bytes / element_bytes);
    for (int i = 0; i < times && s.rank() < 2; ++i) {  // each send waits for the receive before it
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
