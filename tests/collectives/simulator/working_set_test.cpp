// SPDX-License-Identifier: Apache-2.0
#include "collectives/simulator/working_set.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "collectives/simulator/simulate.hpp"
#include "tests/collectives/simulator/uniform_machine.hpp"

namespace {

using namespace baton;

/// A second a byte up to 100 bytes, and two for each byte beyond.
double by_two_rates(double bytes) { return bytes <= 100 ? bytes : 2 * bytes; }

double seconds(std::int64_t own_bytes, int ranks, const Topology& topology, double bytes) {
  return WorkingSet({.tensors = own_bytes, .scratch = 0}, ranks, topology).seconds(bytes, by_two_rates);
}

Topology with_cache(double bytes, double slowdown, Transport moved_by = Transport::engine) {
  Topology topology = uniform_machine(4, {.bytes_per_second = 1, .moved_by = moved_by});
  topology.device.copy.bytes_per_second = 1;
  topology.device.kernel.bytes_per_second = 1;
  topology.device.cache = {bytes, slowdown, "a test"};
  return topology;
}

TEST(WorkingSet, WithoutACacheAStepTakesWhatWasMeasured) {
  EXPECT_EQ(seconds(1000, 4, with_cache(0, 1), 10), 10);
}

TEST(WorkingSet, StepsTakeWhatOneOfHalfTheRanksBytesTakesForEach) {
  EXPECT_EQ(seconds(200, 1, with_cache(1e9, 1), 10), 10);
  EXPECT_EQ(seconds(220, 1, with_cache(1e9, 1), 10), 20);
  EXPECT_EQ(seconds(220, 1, with_cache(1e9, 1), 300), 600) << "larger than what comes in between";
}

TEST(WorkingSet, WhatDoesNotFitIntoTheCacheOfTheNodeTakesLonger) {
  EXPECT_EQ(seconds(100, 4, with_cache(400, 1), 100), 100) << "all of it fits";
  EXPECT_EQ(seconds(100, 4, with_cache(300, 1), 100), 125);
  EXPECT_EQ(seconds(100, 2, with_cache(100, 3), 100), 250);
  EXPECT_EQ(seconds(100, 8, with_cache(200, 1), 100), 150) << "a node has four of the ranks";
}

/// Two buffers of 40 bytes a rank, of which no byte finds a cache.
double round_of(const Topology& topology, const std::function<void(Schedule&, Slice, Slice)>& text) {
  const auto schedules = record(2, [&text](Schedule& s) { text(s, s.scratch("x", 10), s.scratch("y", 10)); });
  return simulate(source_of(schedules), topology).seconds;
}

TEST(WorkingSet, CopiesAndMessagesOfProcessorsTakeLongerButNoKernelsAndNoMessagesOnWires) {
  const auto copy = [](Schedule& s, Slice x, Slice y) { s.copy(x, y); };
  const auto message = [](Schedule& s, Slice x, Slice) {
    if (s.rank() == 0) s.send(1, x);
    if (s.rank() == 1) s.recv(x, 0);
  };
  const auto kernel = [](Schedule& s, Slice x, Slice) {
    s.compute({.name = "work", .body = nullptr, .flops = 0, .bytes = 40}, {x}, {x});
  };
  constexpr double tiny = 1e-9;
  EXPECT_NEAR(round_of(with_cache(tiny, 1), copy), 2 * 80, 1e-6);
  EXPECT_NEAR(round_of(with_cache(tiny, 1), message), 2 * 40, 1e-6);
  EXPECT_NEAR(round_of(with_cache(tiny, 1, Transport::wire), message), 40, 1e-6);
  EXPECT_NEAR(round_of(with_cache(tiny, 1), kernel), 40, 1e-6);
}

}  // namespace
