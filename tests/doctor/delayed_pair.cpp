// SPDX-License-Identifier: Apache-2.0
// Executor `delayed_pair`: the executor `mpi`, but messages between ranks 0 and 2 take a
// millisecond longer.
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "collectives/executors/executor.hpp"

namespace baton {
namespace {

class DelayedPair : public Executor {
 public:
  explicit DelayedPair(int ranks) : inner_(find_executor("mpi").make(ranks)) {}

  std::vector<int> local_ranks() const override { return inner_->local_ranks(); }
  Refusal unsupported(std::span<const Schedule> schedules) const override {
    return inner_->unsupported(schedules);
  }
  void prepare(std::vector<Schedule> schedules) override { inner_->prepare(std::move(schedules)); }
  void write(int rank, const Slice& into, std::span<const float> from) override {
    inner_->write(rank, into, from);
  }
  void read(std::span<float> into, int rank, const Slice& from) const override {
    inner_->read(into, rank, from);
  }
  void synchronise() override { inner_->synchronise(); }
  double run() override { return inner_->run(); }

  double one_way_seconds(std::int64_t bytes, int from, int to) override {
    const double seconds = inner_->one_way_seconds(bytes, from, to);
    const bool takes_part = local_ranks().front() == from || local_ranks().front() == to;
    if (from != 0 || to != 2 || !takes_part) return seconds;
    constexpr std::chrono::milliseconds delay(1);
    std::this_thread::sleep_for(delay);
    return seconds + std::chrono::duration<double>(delay).count();
  }

 private:
  std::unique_ptr<Executor> inner_;
};

const RegisteredExecutor registered{{
    .name = "delayed_pair",
    .summary = "mpi with a slow link between ranks 0 and 2",
    .process_a_rank = true,
    .make = [](int ranks) { return std::make_unique<DelayedPair>(ranks); },
}};

}  // namespace
}  // namespace baton
