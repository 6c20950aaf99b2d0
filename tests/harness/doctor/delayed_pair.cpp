// SPDX-License-Identifier: Apache-2.0
// Executor `delayed_pair`: the executor `mpi`, but it says that messages between ranks 0 and 2 take
// 0.1 s longer, which no load of a machine hides.
#include <memory>

#include "tests/forwarding_executor.hpp"

namespace baton {
namespace {

class DelayedPair : public ForwardingExecutor {
 public:
  explicit DelayedPair(int ranks) : ForwardingExecutor("mpi", ranks) {}

  double one_way_seconds(std::int64_t bytes, int from, int to) override {
    const double seconds = ForwardingExecutor::one_way_seconds(bytes, from, to);
    return from == 0 && to == 2 ? seconds + 0.1 : seconds;
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
