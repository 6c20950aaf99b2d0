// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/probes.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "harness/machine/placement.hpp"
#include "harness/measure/alpha_beta.hpp"
#include "harness/measure/calibration.hpp"
#include "harness/process/world.hpp"
#include "tests/harness/measure/known_machine.hpp"

namespace {

using namespace baton;

constexpr int ranks = 2;
const Placement on_one_host{std::vector<std::uint64_t>(ranks, 0)};

/// A machine whose noise is the greater, the less its rounds do.
class Restless : public KnownMachine {
 public:
  using KnownMachine::KnownMachine;
  void prepare(std::vector<Schedule> schedules) override {
    steps_ = 0;
    for (const Schedule& schedule : schedules) steps_ += static_cast<double>(schedule.steps().size());
    KnownMachine::prepare(std::move(schedules));
  }
  double run() override { return 1 / (1 + steps_); }
  double one_way_seconds(std::int64_t, int, int) override { return 2e-6; }

 private:
  double steps_ = 0;
};

TEST(Probes, WhatNoiseHidesIsUnknownAndNotFree) {
  const World world(nullptr, nullptr);
  Restless machine(uniform_machine(ranks, {.latency_seconds = 1e-6, .bytes_per_second = 5e9}));
  Probes probes(machine, world.all(), ranks);
  EXPECT_TRUE(std::isnan(probes.copy_seconds(1 << 20, 1)));
  EXPECT_TRUE(std::isnan(probes.message_seconds({{0, 1}}, 8)));
  EXPECT_EQ(measure_products(machine, world.all(), ranks, 1), 0) << "unknown, as alpha_beta.hpp says";
  EXPECT_THROW(calibrate(machine, world.all(), on_one_host, "a test"), SystemError);
}

TEST(Probes, ALinkWhoseAlphaIsAsLongAsAnyMessageHasTheRateOfTheLargest) {
  const World world(nullptr, nullptr);
  Restless machine(uniform_machine(ranks, {.latency_seconds = 1e-6, .bytes_per_second = 5e9}));
  EXPECT_DOUBLE_EQ(measure_alpha_beta(machine, world.all(), on_one_host).beta, (4 << 20) / 2e-6);
}

}  // namespace
