// SPDX-License-Identifier: Apache-2.0
// Executor `delayed_pair`: the executor `mpi`, but messages between ranks 0 and 2 take a
// millisecond longer.
#include <chrono>
#include <memory>
#include <thread>

#include "tests/forwarding_executor.hpp"

namespace baton {
namespace {

class DelayedPair : public ForwardingExecutor {
 public:
  explicit DelayedPair(int ranks) : ForwardingExecutor("mpi", ranks) {}

  double one_way_seconds(std::int64_t bytes, int from, int to) override {
    const double seconds = ForwardingExecutor::one_way_seconds(bytes, from, to);
    const bool takes_part = local_ranks().front() == from || local_ranks().front() == to;
    if (from != 0 || to != 2 || !takes_part) return seconds;
    constexpr std::chrono::milliseconds delay(1);
    std::this_thread::sleep_for(delay);
    return seconds + std::chrono::duration<double>(delay).count();
  }
};

const RegisteredExecutor registered{{
    .name = "delayed_pair",
    .summary = "mpi with a slow link between ranks 0 and 2",
    .process_per_rank = true,
    .make = [](int ranks) { return std::make_unique<DelayedPair>(ranks); },
}};

}  // namespace
}  // namespace baton
