// SPDX-License-Identifier: Apache-2.0
// A calibration of a machine whose costs are known, since it is itself simulated.
#include "harness/measure/calibration.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "harness/machine/placement.hpp"
#include "harness/measure/alpha_beta.hpp"
#include "harness/process/world.hpp"
#include "tests/collectives/simulator/uniform_machine.hpp"
#include "tests/harness/measure/known_machine.hpp"

namespace {

using namespace baton;
using testing::Contains;
using testing::Key;
using testing::Not;

/// The same on accelerators, which stream where the topology does.
class KnownDevice : public KnownMachine, public Device {
 public:
  using KnownMachine::KnownMachine;
  Device* device() override { return this; }

  bool streams_messages() const override { return topology().streams; }
  bool groups_messages() const override { return topology().groups; }
  bool starts_on_device() const override { return false; }
  Refusal replay_unsupported() const override { return "simulated"; }
  int replayed_rounds() const override { return 1; }
  double replay() override { return 0; }
  HardwareLimits measure_limits() override { return {}; }
  std::vector<Reading> readings() const override { return {}; }
  std::vector<std::pair<std::string, std::string>> facts() const override { return {}; }
};

constexpr int ranks = 6;
const Placement on_one_host{std::vector<std::uint64_t>(ranks, 0)};

/// Processors that copy through one memory: alone each has 5 GB/s of messages and 20 GB/s of
/// copies, and together no more than 12 and 30.
Topology shared_memory() {
  Topology topology = uniform_machine(ranks, {.latency_seconds = 2e-7,
                                              .overhead_seconds = 4e-7,
                                              .bytes_per_second = 5e9,
                                              .moved_by = Transport::engine,
                                              .node_bytes_per_second = 12e9});
  topology.round_seconds = 3e-7;
  const Curve together{{{0, 0}, {30e9, 1}}};
  topology.device.copy = {.launch_seconds = 1e-7, .bytes_per_second = 20e9, .node_measured = together};
  topology.device.combine = {
      .launch_seconds = 2e-7, .flops_per_second = 1e15, .bytes_per_second = 20e9, .node_measured = together};
  topology.device.kernel = {.launch_seconds = 0, .flops_per_second = 3e9, .bytes_per_second = 1e18};
  return topology;
}

void expect_near(double found, double known, const std::string& what) {
  EXPECT_NEAR(found, known, 0.03 * known) << what;
}

class Calibrated : public testing::Test {
 protected:
  const World world_{nullptr, nullptr};
  KnownMachine machine_{shared_memory()};
  const Topology& known_ = machine_.topology();
  Topology found_ = calibrate(machine_, world_.all(), on_one_host, "a test");
};

TEST_F(Calibrated, MessagesTakeWhatTheyTake) {
  for (double bytes : {8.0, 100.0, 5000.0, 65536.0, 1e6, 10e6, 16e6}) {
    const std::string what = std::to_string(bytes) + " bytes";
    expect_near(found_.intra_node.message_seconds(bytes), known_.intra_node.message_seconds(bytes), what);
    expect_near(found_.intra_node.busy_seconds(bytes), known_.intra_node.busy_seconds(bytes), what);
  }
  EXPECT_EQ(found_.intra_node.moved_by, Transport::engine);
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
  apart.intra_node.node_bytes_per_second = 0;
  apart.device.copy.node_measured = apart.device.combine.node_measured = {};
  KnownMachine machine(apart);
  const Topology found = calibrate(machine, world_.all(), on_one_host, "a test");
  EXPECT_TRUE(found.intra_node.node_measured.empty());
  EXPECT_TRUE(found.device.copy.node_measured.empty());
  EXPECT_TRUE(found.device.combine.node_measured.empty());
}

/// Combines that slow one another from 16 MiB on: the points below have no time.
TEST_F(Calibrated, MemoryThatOnlyTheLargestStepsShareCanBeWritten) {
  Topology late = shared_memory();
  late.device.combine.node_measured = {{{0, 0}, {40e6, 1e-6}, {50e6, 10e-3}}};
  KnownMachine machine(late);
  const Topology found = calibrate(machine, world_.all(), on_one_host, "a test");
  ASSERT_FALSE(found.device.combine.node_measured.empty());
  EXPECT_NO_THROW(parse_topology(write_topology(found), "itself"));
}

TEST_F(Calibrated, LocalStepsTakeWhatTheyTake) {
  for (double bytes : {3e4, 1e6, 10e6}) {
    expect_near(found_.device.copy.seconds(0, bytes), known_.device.copy.seconds(0, bytes), "copy");
    expect_near(found_.device.combine.seconds(0, bytes), known_.device.combine.seconds(0, bytes), "combine");
  }
}

TEST_F(Calibrated, ProductsOfAffineMapsHaveTheirRate) {
  Topology topology = shared_memory();
  topology.device.kernels[affine_combine] = {.flops_per_second = 3e9, .bytes_per_second = 1e18};
  KnownMachine machine(topology);
  const Topology found = calibrate(machine, world_.all(), on_one_host, "a test");
  EXPECT_NEAR(found.device.affine_combine().flops_per_second, 3e9, 3e7);
  EXPECT_NEAR(measure_products(machine, world_.all(), ranks, 1), 3e9, 3e7);
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
  EXPECT_THAT(found_.device.kernels, Not(Contains(Key("free"))))
      << "nothing can be said of a kernel without operations";
}

std::vector<Schedule> one_rank_with(const std::string& kernel) {
  return record(1, [&kernel](Schedule& s) {
    const Slice x = s.scratch("x", 1);
    for (int i = 0; i < 3; ++i) s.compute({.name = kernel, .body = nullptr, .flops = 6e6}, {x}, {x});
  });
}

/// One rank's kernels among the links of other machines.
TEST_F(Calibrated, OneRankGivesItsKernelsToLinksFromElsewhere) {
  Topology links = uniform_machine(8, {.latency_seconds = 1e-6, .bytes_per_second = 2e9}, 4);
  links.device.kernels["of_others"] = links.device.kernel;
  Topology mixed = awaiting_kernels(links, "my GPU", "my GPU, executor nccl");
  calibrate_kernels(mixed, machine_, world_.all(), one_rank_with("seen"), "measured in a test");
  EXPECT_EQ(mixed.device.kernels["seen"].source, "measured in a test");
  EXPECT_THAT(mixed.device.kernels, testing::ElementsAre(Key("seen"))) << "only what was measured here";
  expect_near(mixed.device.rate_of("seen").seconds(6e6, 0), 2e-3, "seen");
  EXPECT_EQ(mixed.ranks(), 32);
  EXPECT_EQ(mixed.intra_node.bytes_per_second, 2e9);
  EXPECT_EQ(mixed.name, "links of uniform, kernels of my GPU");
  EXPECT_EQ(mixed.calibration.stands_on, "kernels: my GPU, executor nccl; all else: uniform");
  EXPECT_EQ(mixed.calibration.most_ranks, 1);
  EXPECT_LT(mixed.calibration.residual, 0.01);
}

TEST_F(Calibrated, MeasuredLinksStayMeasuredBesideOtherKernels) {
  Topology links = found_;
  links.name = "that machine";
  const Topology mixed = awaiting_kernels(links, "my GPU", "my GPU, executor nccl");
  EXPECT_EQ(mixed.calibration.stands_on, "kernels: my GPU, executor nccl; all else: that machine, a test");
  EXPECT_THAT(mixed.device.kernels, Contains(Key(affine_combine))) << "beside combines";
  EXPECT_EQ(mixed.calibration.most_ranks, ranks);
  EXPECT_EQ(mixed.calibration.most_bytes, 16 << 20);
}

/// A round that takes longer than its kernels do is a residual.
TEST_F(Calibrated, TheResidualIsThatOfARound) {
  Topology slow = shared_memory();
  slow.round_seconds = 6e-3;  // as long as the kernels of the round
  KnownMachine machine(slow);
  Topology mixed = awaiting_kernels(shared_memory(), "my GPU", "a test");
  calibrate_kernels(mixed, machine, world_.all(), one_rank_with("seen"));
  EXPECT_NEAR(mixed.calibration.residual, 1, 0.05);
}

/// Accelerators with a port of 100 GB/s for each direction.
Topology wired(bool streams) {
  Topology topology =
      uniform_machine(ranks, {.latency_seconds = 2e-6, .overhead_seconds = 5e-7, .bytes_per_second = 100e9});
  topology.round_seconds = 4e-6;
  topology.streams = streams;
  topology.device.copy = {.bytes_per_second = 2e12};
  topology.device.combine = {.flops_per_second = 1e15, .bytes_per_second = 2e12};
  return topology;
}

Topology found_of(const Topology& known) {
  const World world{nullptr, nullptr};
  KnownDevice machine(known);
  return calibrate(machine, world.all(), on_one_host, "a test");
}

/// Sizes that hold a port for longer than a head is on its way.
constexpr double large_messages[] = {1e6, 5e6, 16e6};

TEST(CalibratedDevice, ThatStreamsHasItsLatencyAndItsRate) {
  const Topology known = wired(true), found = found_of(known);
  EXPECT_TRUE(found.streams);
  EXPECT_EQ(found.intra_node.moved_by, Transport::wire);
  expect_near(found.round_seconds, known.round_seconds, "round");
  for (double bytes : {8.0, 100.0, 5000.0, 65536.0, 1e6, 16e6})
    expect_near(found.intra_node.message_seconds(bytes), known.intra_node.message_seconds(bytes),
                std::to_string(bytes) + " bytes");
  for (double bytes : large_messages) {
    expect_near(found.intra_node.latency(bytes), known.intra_node.latency(bytes), "latency");
    expect_near(found.intra_node.busy_seconds(bytes), known.intra_node.busy_seconds(bytes), "busy");
  }
  expect_near(found.intra_node.bytes_per_second, known.intra_node.bytes_per_second, "rate");
  EXPECT_TRUE(found.intra_node.node_measured.empty()) << "ports share nothing";
}

/// A message waits for all of the one before it, so that an exchange is one of them and not two,
/// its latency included.
TEST(CalibratedDevice, ThatDoesNotStreamHoldsAPortForAllOfAnExchange) {
  const Topology known = wired(false), found = found_of(known);
  EXPECT_FALSE(found.streams);
  EXPECT_EQ(found.intra_node.moved_by, Transport::wire);
  for (double bytes : {8.0, 5000.0, 1e6, 16e6}) {
    const double message = known.intra_node.message_seconds(bytes);
    expect_near(found.intra_node.message_seconds(bytes), message, std::to_string(bytes) + " bytes");
    expect_near(found.intra_node.busy_seconds(bytes), message, std::to_string(bytes) + " bytes' port");
  }
  expect_near(found.intra_node.bytes_per_second, known.intra_node.bytes_per_second, "rate");
}

TEST(CalibratedDevice, ThatGroupsItsMessagesPaysTheLaunchInEachOfThem) {
  Topology known = wired(false);
  known.groups = true;
  const Topology found = found_of(known);
  EXPECT_TRUE(found.groups);
  EXPECT_FALSE(found_of(wired(false)).groups);
  for (double bytes : {8.0, 5000.0, 1e6, 16e6})
    expect_near(found.intra_node.message_seconds(bytes), known.intra_node.message_seconds(bytes),
                std::to_string(bytes) + " bytes");
}

/// In blocks that hold a port for longer than a head is on its way: what smaller ones hold is not
/// seen in exchanges of which each waits for the head of the one before.
TEST(CalibratedDevice, PredictsTheChainsThatStream) {
  const Topology known = wired(true), found = found_of(known);
  const Shape shape{.heads = 64, .d_k = 128, .d_v = 128, .tokens = 128};
  for (const char* name : {"ring_scan", "all_scan"})
    for (int P : {2, 4, ranks}) {
      const ScheduleSource source = source_of(find_collective(name), shape, {.ranks = P, .blocks = 4});
      expect_near(simulate(source, found).seconds, simulate(source, known).seconds,
                  name + (" on " + std::to_string(P)));
    }
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
  EXPECT_THAT(found_.device.kernels, testing::ElementsAre(Key(affine_combine)));
}

}  // namespace
