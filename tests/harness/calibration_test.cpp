// SPDX-License-Identifier: Apache-2.0
// A calibration of a machine whose costs are known, since it is itself simulated.
#include "harness/calibration.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/collectives/executors/uniform_machine.hpp"

namespace {

using namespace baton;
using testing::Contains;
using testing::IsEmpty;
using testing::Key;

/// Takes as long as a topology says, and moves nothing.
class KnownMachine : public Executor {
 public:
  explicit KnownMachine(Topology topology) : topology_(std::move(topology)) {}

  std::vector<int> local_ranks() const override { return {}; }
  std::string supports(std::span<const Schedule>) const override { return {}; }
  void prepare(std::vector<Schedule> schedules) override { schedules_ = std::move(schedules); }
  void write(int, const Slice&, std::span<const float>) override {}
  void read(std::span<float>, int, const Slice&) const override {}
  void synchronise() override {}
  double run() override { return simulate(source_of(schedules_), topology_).seconds; }
  std::vector<StepTime> run_traced() override {
    return simulate(source_of(schedules_), topology_, true).timeline;
  }
  double one_way_seconds(std::int64_t, int, int) override { return 0; }

  const Topology& topology() const { return topology_; }

 private:
  Topology topology_;
  std::vector<Schedule> schedules_;
};

constexpr int ranks = 6;

/// Processors that copy through one memory: alone each has 5 GB/s of messages and 20 GB/s of copies, and together no
/// more than 12 and 30.
Topology shared_memory() {
  Topology topology = uniform_machine(ranks, {.latency_seconds = 2e-7,
                                              .overhead_seconds = 4e-7,
                                              .bytes_a_second = 5e9,
                                              .moved_by = Mover::engine,
                                              .node_bytes_a_second = 12e9});
  topology.round_seconds = 3e-7;
  const Curve together{{{0, 0}, {30e9, 1}}};
  topology.device.copy = {.launch_seconds = 1e-7, .bytes_a_second = 20e9, .node_measured = together};
  topology.device.combine = {
      .launch_seconds = 2e-7, .flops_a_second = 1e15, .bytes_a_second = 20e9, .node_measured = together};
  topology.device.kernel = {.launch_seconds = 0, .flops_a_second = 3e9, .bytes_a_second = 1e18};
  return topology;
}

class Calibrated : public testing::Test {
 protected:
  void expect_near(double found, double known, const std::string& what) {
    EXPECT_NEAR(found, known, 0.03 * known) << what;
  }

  const World world_{nullptr, nullptr};
  KnownMachine machine_{shared_memory()};
  const Topology& known_ = machine_.topology();
  Topology found_ = calibrate(machine_, world_.all(), ranks, "a test");
};

TEST_F(Calibrated, MessagesTakeWhatTheyTake) {
  for (double bytes : {8.0, 100.0, 5000.0, 65536.0, 1e6, 10e6, 16e6}) {
    const std::string what = std::to_string(bytes) + " bytes";
    expect_near(found_.intra_node.message_seconds(bytes), known_.intra_node.message_seconds(bytes), what);
    expect_near(found_.intra_node.busy_seconds(bytes), known_.intra_node.busy_seconds(bytes), what);
  }
  EXPECT_EQ(found_.intra_node.moved_by, Mover::engine);
}

TEST_F(Calibrated, AllRanksTogetherShareTheMemory) {
  for (double bytes : {1e6, 10e6}) {
    expect_near(found_.intra_node.node_seconds(bytes), known_.intra_node.node_seconds(bytes), "messages");
    expect_near(found_.device.copy.node_seconds(bytes), known_.device.copy.node_seconds(bytes), "copies");
    expect_near(found_.device.combine.node_seconds(bytes), known_.device.combine.node_seconds(bytes),
                "combines");
  }
}

TEST_F(Calibrated, WhatOneRankHasForItselfIsNotShared) {
  Topology apart = shared_memory();
  apart.intra_node.node_bytes_a_second = 0;
  apart.device.copy.node_measured = apart.device.combine.node_measured = {};
  KnownMachine machine(apart);
  const Topology found = calibrate(machine, world_.all(), ranks, "a test");
  EXPECT_TRUE(found.intra_node.node_measured.empty());
  EXPECT_TRUE(found.device.copy.node_measured.empty());
  EXPECT_TRUE(found.device.combine.node_measured.empty());
}

TEST_F(Calibrated, LocalStepsTakeWhatTheyTake) {
  for (double bytes : {3e4, 1e6, 10e6}) {
    expect_near(found_.device.copy.seconds(0, bytes), known_.device.copy.seconds(0, bytes), "copy");
    expect_near(found_.device.combine.seconds(0, bytes), known_.device.combine.seconds(0, bytes), "combine");
  }
}

TEST_F(Calibrated, SaysWhatItStandsOn) {
  EXPECT_EQ(found_.calibration.stands_on, "a test");
  EXPECT_EQ(found_.calibration.most_ranks, ranks);
  EXPECT_EQ(found_.calibration.least_bytes, 8);
  EXPECT_EQ(found_.calibration.most_bytes, 16 << 20);
  EXPECT_LT(found_.calibration.residual, 0.01);
  EXPECT_EQ(found_.ranks(), ranks);
  EXPECT_NO_THROW(parse_topology(write_topology(found_), "itself"));
}

/// What a calibration is for: schedules that it has never seen, on as many ranks and fewer.
TEST_F(Calibrated, PredictsEveryCollective) {
  const Shape shape{.heads = 8, .d_k = 64, .d_v = 128, .tokens = 128};
  for (const Collective* collective : collectives())
    for (int P : {2, 4, ranks}) {
      const ScheduleSource source = source_of(*collective, shape, {.ranks = P, .blocks = 4});
      if (!source.build(0).natives().empty()) continue;
      const double known = simulate(source, known_).seconds, found = simulate(source, found_).seconds;
      EXPECT_NEAR(found, known, 0.05 * known) << collective->name << " on " << P;
    }
}

TEST_F(Calibrated, KernelsAreRatesOfTheirOwn) {
  const auto two_kernels = record(ranks, [](Schedule& s) {
    const Slice x = s.scratch("x", 1);
    for (int i = 0; i < 3; ++i) s.compute({.name = "seen", .body = nullptr, .flops = 6e6}, {x}, {x});
    s.compute({.name = "free", .body = nullptr, .flops = 0}, {x}, {x});
  });
  calibrate_kernels(found_, machine_, world_.all(), two_kernels);
  ASSERT_THAT(found_.device.kernels, Contains(Key("seen")));
  expect_near(found_.device.rate_of("seen").seconds(6e6, 0), 2e-3, "seen");
  EXPECT_EQ(found_.device.kernels.size(), 1u) << "nothing can be said of a kernel without operations";
}

/// An executor that cannot tell when its steps ran.
class Silent : public KnownMachine {
 public:
  using KnownMachine::KnownMachine;
  std::vector<StepTime> run_traced() override { return {}; }
};

TEST_F(Calibrated, KernelsStayUnknownWhereNobodyTells) {
  Silent silent(shared_memory());
  const auto one_kernel = record(ranks, [](Schedule& s) {
    s.compute({.name = "unseen", .body = nullptr, .flops = 6e6}, {s.scratch("x", 1)}, {});
  });
  calibrate_kernels(found_, silent, world_.all(), one_kernel);
  EXPECT_THAT(found_.device.kernels, IsEmpty());
}

}  // namespace
