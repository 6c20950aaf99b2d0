// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

namespace baton {
namespace {

/// The number of elements of an output that are poisoned before a round.
constexpr std::int64_t poisoned = 64;

/// Runs the rounds of one case and collects this process's times.
class Rounds {
 public:
  Rounds(Executor& executor, const Team& team, Cadence cadence, RoundWatch* watch)
      : executor_(executor),
        team_(team),
        cadence_(cadence),
        watch_(watch),
        readings_before_(read_devices()) {}

  void warm_up(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      const double seconds = run_once(fmt::format("warm-up round {} of {}", i + 1, rounds));
      if (i == 0) samples_.first_seconds = seconds;
    }
    mine_.clear();
  }

  void run(int rounds) {
    if (cadence_ == Cadence::streaming) return run_stream(rounds);
    for (int i = 0; i < rounds; ++i)
      samples_.seconds.push_back(run_once(fmt::format("round {} of {}", i + 1, rounds)));
  }

  Samples samples() && {
    const std::vector<double> now = read_devices();
    samples_.rank_seconds = team_.gather(mine_);
    if (now.empty()) return std::move(samples_);
    for (const Reading& reading : executor_.device()->readings())
      samples_.reading_names.push_back(reading.name);
    samples_.readings_before = team_.gather(readings_before_);
    samples_.readings_after = team_.gather(now);
    return std::move(samples_);
  }

 private:
  /// Runs one round and returns the slowest rank's seconds.
  double run_once(const std::string& name) {
    if (watch_ != nullptr) watch_->before_round();
    executor_.synchronise();
    mine_.push_back(cadence_ == Cadence::graph ? executor_.device()->replay() : executor_.run());
    if (watch_ != nullptr) watch_->after_round(name);
    return team_.max(mine_.back());
  }

  void run_stream(int rounds) {
    if (watch_ != nullptr) watch_->before_round();
    executor_.synchronise();
    mine_ = executor_.stream(rounds);
    if (watch_ != nullptr) watch_->after_round(fmt::format("the stream of {} rounds", rounds));
    const auto all = team_.gather(mine_);
    for (int i = 0; i < rounds; ++i) {
      const auto slowest =
          std::max_element(all.begin(), all.end(), [i](auto& a, auto& b) { return a[i] < b[i]; });
      samples_.seconds.push_back((*slowest)[i]);
    }
  }

  std::vector<double> read_devices() const {
    std::vector<double> values;
    if (const Device* device = executor_.device())
      for (const Reading& reading : device->readings()) values.push_back(reading.value);
    return values;
  }

  Executor& executor_;
  const Team& team_;
  Cadence cadence_;
  RoundWatch* watch_;
  std::vector<double> readings_before_;
  std::vector<double> mine_;
  Samples samples_;
};

}  // namespace

RoundWatch::RoundWatch(Executor& executor, std::span<const Schedule> schedules,
                       const std::vector<std::string>& vary)
    : executor_(executor) {
  for (const int rank : executor.local_ranks()) {
    Rank& watched = ranks_.emplace_back(Rank{rank, {}, {}, std::nullopt});
    for (const Buffer& buffer : schedules[rank].buffers()) {
      if (buffer.role != Role::output || buffer.count == 0) continue;
      const Slice output = schedules[rank].buffer(buffer.name);
      if (std::find(vary.begin(), vary.end(), buffer.name) == vary.end()) watched.outputs.push_back(output);
      if (buffer.covered) watched.covered.push_back(output);
    }
  }
}

void RoundWatch::before_round() {
  const double start = monotonic_seconds();
  for (const Rank& watched : ranks_)
    for (const Slice& output : watched.covered)
      executor_.scatter(watched.rank, output, (output.count + poisoned - 1) / poisoned, poison);
  seconds_ += monotonic_seconds() - start;
}

void RoundWatch::after_round(const std::string& name) {
  const double start = monotonic_seconds();
  if (first_round_.empty()) first_round_ = name;
  bool differs = false;
  for (Rank& watched : ranks_) {
    const std::uint64_t checksum = executor_.checksum(watched.rank, watched.outputs);
    if (!watched.checksum) watched.checksum = checksum;
    if (watched.checksum == checksum) continue;
    differs = true;
    if (found_.first.empty())
      found_.first =
          fmt::format("{} left other results than {} on rank {}", name, first_round_, watched.rank);
  }
  found_.wrong += differs;
  seconds_ += monotonic_seconds() - start;
}

Samples measure_rounds(Executor& executor, const Team& team, Cadence cadence, int warmup, int rounds,
                       RoundWatch* watch) {
  Rounds all(executor, team, cadence, watch);
  all.warm_up(warmup);
  all.run(rounds);
  return std::move(all).samples();
}

void run_untimed(Executor& executor, Cadence cadence) {
  executor.synchronise();
  switch (cadence) {
    case Cadence::isolated: executor.run(); break;
    case Cadence::streaming: executor.stream(2); break;
    case Cadence::graph: executor.device()->replay(); break;
  }
}

}  // namespace baton
