// SPDX-License-Identifier: Apache-2.0
// Executors `local` and `local_bf16`: all ranks run in one process, and a message is a copy, which
// local_bf16 rounds to bf16.
//
//   prepare: put the steps of all ranks in one order in which each can run when its turn comes
//   run:     run them in that order; a send and its receive are one copy
//
// Tests and oracles use them at any number of ranks. One thread does the work of all ranks, so
// their times say nothing about a machine.
#include <algorithm>
#include <chrono>
#include <memory>

#include "collectives/executors/host/memory.hpp"
#include "collectives/executors/host/one_process.hpp"
#include "collectives/schedule/check.hpp"
#include "collectives/schedule/orders.hpp"

namespace baton {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class LocalExecutor : public OneProcessExecutor<HostMemory> {
 public:
  LocalExecutor(int ranks, Dtype wire) : OneProcessExecutor(ranks), wire_(wire) {}

  Refusal unsupported(std::span<const Schedule> schedules) const override {
    for (const Schedule& schedule : schedules)
      for (const NativeCall& native : schedule.natives()) return native.name + " is no native of local";
    return unsupported_on_host(schedules);
  }

  void synchronise() override {}

  Dtype wire_dtype() const override { return wire_; }

  double run() override {
    const auto start = Clock::now();
    for (const Turn& turn : order()) take(turn);
    return seconds_since(start);
  }

  std::vector<StepTime> run_traced() override {
    const Matching matching("local", prepared());
    std::vector<StepTime> times;
    times.reserve(matching.steps());
    const auto start = Clock::now();
    for (const Turn& turn : order()) {
      const double from = seconds_since(start);
      take(turn);
      times.push_back({turn.rank, turn.step, from, seconds_since(start)});
    }
    for (std::size_t i = 0, turns = times.size(); i < turns; ++i) {
      const int receive = matching.partner(matching.number(times[i].rank, times[i].step));
      if (receive < 0) continue;
      const int rank = matching.rank(receive);
      times.push_back(
          {rank, receive - matching.number(rank, 0), times[i].start_seconds, times[i].finish_seconds});
    }
    return times;
  }

  double one_way_seconds(std::int64_t bytes, int, int) override {
    std::vector<char> from(bytes, 1), into(bytes);
    const auto start = Clock::now();
    std::copy(from.begin(), from.end(), into.begin());
    return seconds_since(start);
  }

 private:
  void deliver(HostMemory& receiver, const Slice& into, const HostMemory& sender,
               const Slice& from) override {
    const auto sent = sender.view(from);
    const auto received = receiver.view(into).begin();
    if (wire_ == Dtype::bf16)
      std::transform(sent.begin(), sent.end(), received, [](float x) { return from_bf16(to_bf16(x)); });
    else
      std::copy(sent.begin(), sent.end(), received);
  }
  void run_local(const Schedule& schedule, const Step& step, HostMemory& memory) override {
    run_on_host(schedule, step, memory.operands(step));
  }

  Dtype wire_;
};

RegisteredExecutor add(const char* name, const char* summary, Dtype wire) {
  return RegisteredExecutor{{
      .name = name,
      .summary = summary,
      .process_per_rank = false,
      .make = [wire](int ranks) { return std::make_unique<LocalExecutor>(ranks, wire); },
      .wire = wire,
  }};
}

const RegisteredExecutor exact =
    add("local", "all ranks in one process and one thread; for checks, not for times", Dtype::f32);
const RegisteredExecutor rounded = add(
    "local_bf16", "local with messages rounded to bf16: what a narrow wire costs in accuracy", Dtype::bf16);

}  // namespace
}  // namespace baton
