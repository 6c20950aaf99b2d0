// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/prediction.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "harness/cases/case.hpp"
#include "harness/cases/collective_workload.hpp"
#include "tests/collectives/simulator/uniform_machine.hpp"

namespace {

using namespace baton;
using testing::IsEmpty;

constexpr Shape shape{.heads = 2, .d_k = 32, .d_v = 64};  // 64 rows of 256 B

Case case_of(const char* name, int ranks, int ranks_per_node = 0) {
  return {.workload = collective_workload(find_collective(name), shape, Direction::forward),
          .backend = &find_backend("simulator"),
          .ranks = ranks,
          .blocks = auto_blocks,
          .ranks_per_node = ranks_per_node};
}

double seconds_in(int blocks, const Case& bench_case, const Topology& topology) {
  return simulate(schedules_of(bench_case, blocks), topology).seconds;
}

/// The least time over every number of blocks.
double brute_force(const Case& bench_case, const Topology& topology) {
  double least = std::numeric_limits<double>::infinity();
  for (int blocks = 1; blocks <= shape.rows(); ++blocks)
    least = std::min(least, seconds_in(blocks, bench_case, topology));
  return least;
}

void expect_best(const Case& bench_case, const Topology& topology) {
  const int blocks = best_blocks_on(bench_case, topology);
  EXPECT_GE(blocks, 1);
  EXPECT_LE(blocks, shape.rows());
  // The search goes in steps of 1.4, which leaves a flat minimum at most a few per cent away.
  EXPECT_LE(seconds_in(blocks, bench_case, topology), 1.04 * brute_force(bench_case, topology))
      << bench_case.name() << ": " << blocks << " blocks";
}

TEST(BestBlocks, AreTheFastestOfAllOnUniformNetworks) {
  for (double overhead : {0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-4})
    for (int ranks : {2, 3, 8, 32}) {
      const LinkModel link{.latency_seconds = 1e-6, .overhead_seconds = overhead, .bytes_per_second = 1e9};
      expect_best(case_of("all_scan", ranks), uniform_machine(ranks, link));
    }
}

TEST(BestBlocks, AreTheFastestWhereEnginesAndLocalStepsCount) {
  Topology topology = uniform_machine(8, {.latency_seconds = 2e-7,
                                          .overhead_seconds = 3e-7,
                                          .bytes_per_second = 5e9,
                                          .moved_by = Transport::engine,
                                          .node_bytes_per_second = 8e9});
  expect_best(case_of("all_scan", 8), topology);
  topology.device.combine = {.launch_seconds = 1e-6, .flops_per_second = 1e9, .bytes_per_second = 1e9};
  expect_best(case_of("all_scan", 8), topology);
}

TEST(BestBlocks, AreTheFastestOnTwoLevels) {
  Topology topology =
      uniform_machine(4, {.latency_seconds = 1e-6, .overhead_seconds = 1e-8, .bytes_per_second = 1e11}, 6);
  topology.inter_node = {.latency_seconds = 5e-6, .overhead_seconds = 1e-7, .bytes_per_second = 1e9};
  for (const char* name : {"all_scan", "hierarchical_scan_chain"})
    expect_best(case_of(name, 24, 4), topology);
}

TEST(BestBlocks, AreOneWhereEveryMessageCosts) {
  const LinkModel slow{.latency_seconds = 0, .overhead_seconds = 1, .bytes_per_second = 1e12};
  EXPECT_EQ(best_blocks_on(case_of("all_scan", 8), uniform_machine(8, slow)), 1);
}

TEST(BestBlocks, AreFewWhereABlockCostsNothing) {
  const LinkModel free{.latency_seconds = 1e-6, .overhead_seconds = 0, .bytes_per_second = 1e9};
  Case bench_case = case_of("all_scan", 4);
  bench_case.workload = collective_workload(find_collective("all_scan"), Shape{}, Direction::forward);
  const Topology topology = uniform_machine(4, free);
  const int blocks = best_blocks_on(bench_case, topology);
  const auto most = static_cast<int>(bench_case.workload->state_rows());
  EXPECT_LE(blocks, most / 2);
  EXPECT_LE(seconds_in(blocks, bench_case, topology), 1.002 * seconds_in(most, bench_case, topology));
}

TEST(BestBlocks, AreOneOnAMachineThatStreams) {
  for (double overhead : {0.0, 1e-7, 1e-5}) {
    Topology topology =
        uniform_machine(8, {.latency_seconds = 1e-6, .overhead_seconds = overhead, .bytes_per_second = 1e9});
    topology.streams = true;
    EXPECT_EQ(best_blocks_on(case_of("all_scan", 8), topology), 1);
    expect_best(case_of("all_scan", 8), topology);
  }
}

TEST(BestBlocks, OfThousandsOfRanksCanBeSimulated) {
  constexpr int ranks = 16384;
  const LinkModel link{.latency_seconds = 8e-6, .overhead_seconds = 35e-9, .bytes_per_second = 48e9};
  Case bench_case = case_of("all_scan", ranks);
  bench_case.workload = collective_workload(find_collective("all_scan"), Shape{}, Direction::forward);
  const Topology topology = uniform_machine(ranks, link);
  const int blocks = best_blocks_on(bench_case, topology);
  EXPECT_GT(blocks, 100) << "the model's word is some thousands";
  EXPECT_EQ(unsupported_by_simulator(schedules_of(bench_case, blocks), topology).reason(), "");
}

TEST(Prediction, IsWhatTheSimulatorSays) {
  const LinkModel link{.latency_seconds = 1e-6, .bytes_per_second = 1e9};
  const Topology topology = uniform_machine(4, link);
  const Case bench_case = case_of("all_scan", 4);
  const auto prediction = predict(bench_case, 8, topology);
  ASSERT_TRUE(prediction);
  EXPECT_DOUBLE_EQ(prediction->seconds, seconds_in(8, bench_case, topology));
  EXPECT_EQ(prediction->topology, topology.name);
  EXPECT_THAT(prediction->extrapolated, IsEmpty());
}

TEST(Prediction, IsEmptyWhereTheSimulatorCannotTell) {
  const Topology topology = uniform_machine(4, {});
  for (const Case& bench_case : {case_of("mpi_exscan", 4), case_of("all_scan", 5)})
    EXPECT_FALSE(predict(bench_case, 1, topology)) << bench_case.name();
}

TEST(Extrapolation, IsNamedWhereACalibrationDoesNotReach) {
  Topology topology = uniform_machine(4, {}, 4);
  const auto words = [&topology](const char* name, int ranks) {
    const Case bench_case = case_of(name, ranks);
    const ScheduleSource source = schedules_of(bench_case, 4);
    return extrapolates(source, simulate(source, topology), topology);
  };
  EXPECT_THAT(words("all_scan", 16), IsEmpty()) << "nothing was measured: nothing to reach beyond";
  topology.calibration = {.most_ranks = 8, .least_bytes = 64, .most_bytes = shape.state_bytes() / 2};
  EXPECT_THAT(words("all_scan", 4), IsEmpty()) << "messages of a quarter of the state";
  EXPECT_EQ(words("all_scan", 16), "16 ranks, 8 were measured");
  EXPECT_EQ(words("all_scan", 8), "between nodes, where nothing was measured");
  EXPECT_EQ(words("ring_scan", 4), "messages of 16384 to 16384 B, 64 to 8192 were measured");
  topology.calibration.least_bytes = 65;
  EXPECT_EQ(words("two_shot", 4), "messages of 20 to 2816 B, 65 to 8192 were measured")
      << "half the decay of an end's slice, and half a slice of the middle";
  EXPECT_THAT(words("ring_scan", 1), IsEmpty()) << "a rank alone sends nothing";
  topology.calibration.most_ranks = 1;
  EXPECT_EQ(words("ring_scan", 4), "its links were not measured, but its kernels");
}

TEST(Extrapolation, NamesAKernelThatWasNotMeasured) {
  Topology topology = uniform_machine(2, {});
  topology.calibration = {.most_ranks = 2, .least_bytes = 1, .most_bytes = 1 << 30};
  Schedule works(0, 1);
  works.compute({.name = "works", .body = [](const HostOperands&) {}}, {works.output("made", 1)}, {});
  const ScheduleSource source = source_of({works});
  EXPECT_EQ(extrapolates(source, simulate(source, topology), topology), "the kernel works was not measured");
  topology.device.kernels["works"] = topology.device.kernel;
  EXPECT_THAT(extrapolates(source, simulate(source, topology), topology), IsEmpty());
}

TEST(Extrapolation, NamesProductsThatWereNotMeasured) {
  Topology topology = uniform_machine(4, {});
  topology.calibration = {.most_ranks = 4, .least_bytes = 1, .most_bytes = 1 << 30};
  Shape affine = shape;
  affine.map = MapKind::affine;
  const Case bench_case{
      .workload = collective_workload(find_collective("all_scan"), affine, Direction::forward),
      .backend = &find_backend("mpi"),
      .ranks = 4};
  const ScheduleSource source = schedules_of(bench_case, 4);
  EXPECT_EQ(extrapolates(source, simulate(source, topology), topology),
            "the products of affine maps were not measured");
  topology.device.kernels[affine_combine] = topology.device.kernel;
  EXPECT_THAT(extrapolates(source, simulate(source, topology), topology), IsEmpty());
}

TEST(Extrapolation, IsInTheRecord) {
  Topology topology = uniform_machine(4, {});
  topology.calibration = {.most_ranks = 2, .least_bytes = 8, .most_bytes = 1 << 20};
  const auto prediction = predict(case_of("all_scan", 4), 1, topology);
  ASSERT_TRUE(prediction);
  EXPECT_EQ(prediction->extrapolated, "4 ranks, 2 were measured");
}

}  // namespace
