// SPDX-License-Identifier: Apache-2.0
#include "collectives/simulator/natives.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/collective.hpp"
#include "collectives/simulator/simulate.hpp"
#include "tests/collectives/simulator/topology/valid_topology.hpp"
#include "tests/collectives/simulator/uniform_machine.hpp"

namespace {

using namespace baton;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

/// A second a byte on 2 ranks and three on 4, behind 10 seconds.
LibraryProtocol slow() {
  return {
      .name = "slow", .base_seconds = 1, .few = {{{0, 10}, {1000, 1010}}}, .more = {{{0, 10}, {1000, 3010}}}};
}

/// The same behind 100 seconds, for large shares. A library takes it from a share of 10 bytes on.
LibraryProtocol large() {
  LibraryProtocol one = slow();
  one.name = "large";
  one.base_seconds = 11;
  one.bytes_per_second = 1e9;
  for (Curve* curve : {&one.few, &one.more})
    for (Curve::Point& point : curve->points) point.seconds += 90;
  return one;
}

Topology with_call(int ranks, const LibraryCall& call) {
  Topology topology = uniform_machine(ranks, {.bytes_per_second = 1});
  topology.natives["nccl_all_gather"] = call;
  return topology;
}

TEST(LibraryCall, IsLinearInTheRanks) {
  const LibraryCall call{.protocols = {slow()}};
  EXPECT_DOUBLE_EQ(call.seconds(2, 5), 15);
  EXPECT_DOUBLE_EQ(call.seconds(3, 5), 20);
  EXPECT_DOUBLE_EQ(call.seconds(4, 5), 25);
  EXPECT_DOUBLE_EQ(call.seconds(8, 5), 45);
}

TEST(LibraryCall, AddsNoMoreForARankThanAStepTookSoFar) {
  LibraryProtocol shared = slow();
  shared.more = {{{0, 90}, {1000, 3090}}};
  const LibraryCall call{.protocols = {shared}};
  EXPECT_DOUBLE_EQ(call.seconds(3, 5), (15 + 105) / 2.0);
  EXPECT_DOUBLE_EQ(call.seconds(8, 5), 105 + 4 * 105 / 3.0);
}

TEST(LibraryCall, TakesTheProtocolOfTheLeastEstimate) {
  const LibraryCall call{.protocols = {slow(), large()}};
  EXPECT_EQ(call.protocol(2, 9).name, "slow");
  EXPECT_EQ(call.protocol(2, 11).name, "large");
  EXPECT_EQ(call.protocol(3, 9).name, "large") << "a step more, and each costs its bytes";
  EXPECT_DOUBLE_EQ(call.seconds(2, 9), 19);
  EXPECT_DOUBLE_EQ(call.seconds(2, 11), 111);
}

TEST(LibraryCall, TakesNoLessThanItsStartOnAllRanks) {
  const LibraryCall call{.start_seconds = 100, .protocols = {slow()}};
  EXPECT_DOUBLE_EQ(call.seconds(2, 5), 200);
  EXPECT_DOUBLE_EQ(call.seconds(2, 1000), 1010);
}

TEST(SimulatedNative, StartsWhenTheLastRankHasComeAndEndsOnAllAtOnce) {
  Topology topology = with_call(3, {.protocols = {slow()}});
  topology.device.kernel.flops_per_second = 1;
  const auto text = [](Schedule& s) {
    const Slice own = s.scratch("own", 2), all = s.scratch("all", 6);
    s.compute({.name = "work", .body = nullptr, .flops = 7.0 * s.rank()}, {own}, {});
    s.native("nccl_all_gather", 1, {all}, {own});
  };
  const Simulation round = simulate(source_of(record(3, text)), topology);
  EXPECT_THAT(round.rank_seconds, Each(14 + 10 + 8 * 2));  // two steps of a share of 8 bytes
  EXPECT_EQ(round.messages, 0);
}

TEST(SimulatedNative, TakesItsCallAndNoLaunchOfARoundBesideIt) {
  Topology topology = with_call(4, {.protocols = {slow()}});
  topology.round_seconds = 4;
  const auto text = [](Schedule& s) {
    s.native("nccl_all_gather", 1, {s.scratch("all", 4)}, {s.scratch("own", 1)});
  };
  EXPECT_THAT(simulate(source_of(record(4, text)), topology).rank_seconds, Each(10 + 3 * 4));
}

TEST(SimulatedNative, FoldsWhatItGathers) {
  Topology topology = with_call(4, {.protocols = {slow()}});
  topology.device.kernel.launch_seconds = 5;
  topology.device.combine.bytes_per_second = 1;
  const Shape shape{.heads = 1, .d_k = 2, .d_v = 3};
  const auto text = [&](Schedule& s) {
    const Slice maps = s.scratch("maps", s.ranks() * shape.map_elements());
    s.native("nccl_all_gather_scan", 1, {s.scratch("into", 6), maps}, {s.scratch("own", 8)});
  };
  const double gather = 10 + 3 * 32, fold = 5 + (4 * 32 + 24);
  EXPECT_THAT(simulate(source_of(record(4, text)), topology).rank_seconds, Each(gather + fold));
}

TEST(SimulatedNative, IsKnownWhereTheTopologyHasItsCall) {
  const Topology topology = with_call(4, {.protocols = {slow()}});
  EXPECT_THAT(simulated_natives(topology), UnorderedElementsAre("nccl_all_gather", "nccl_all_gather_scan"));
  EXPECT_THAT(simulated_natives(uniform_machine(4, {})), ElementsAre());
}

TEST(SimulatedNative, IsRefusedWhereItsTimesAreUnknown) {
  const auto refusal = [](const char* name, const Topology& topology) {
    return unsupported_by_simulator(source_of(find_collective(name), Shape{}, {.ranks = 4}), topology)
        .reason();
  };
  const Topology known = with_call(4, {.protocols = {slow()}});
  EXPECT_EQ(refusal("nccl_all_gather", known), "");
  EXPECT_THAT(refusal("nccl_reduce_scatter", known), HasSubstr("nccl_reduce_scatter is a native"));
  Topology two_nodes = known;
  two_nodes.nodes = two_nodes.ranks_per_node = 2;
  EXPECT_THAT(refusal("nccl_all_gather", two_nodes), HasSubstr("those of one node"));
}

TEST(TopologyText, HasTheCallsOfALibrary) {
  Topology topology = parse_topology(valid().dump(), "valid");
  topology.natives["nccl_all_gather"] = {.few_ranks = 2,
                                         .more_ranks = 8,
                                         .start_seconds = 2e-6,
                                         .protocols = {large(), slow()},
                                         .source = "fitted"};
  const LibraryCall back = parse_topology(write_topology(topology), "back").natives.at("nccl_all_gather");
  EXPECT_EQ(back.more_ranks, 8);
  EXPECT_EQ(back.start_seconds, 2e-6);
  EXPECT_EQ(back.source, "fitted");
  ASSERT_EQ(back.protocols.size(), 2u);
  EXPECT_EQ(back.protocols[0].name, "large");
  EXPECT_EQ(back.protocols[0].bytes_per_second, 1e9);
  EXPECT_EQ(back.protocols[0].few.seconds(500), large().few.seconds(500));
  EXPECT_EQ(back.protocols[1].more.seconds(500), slow().more.seconds(500));
  topology.natives["nccl_all_gather"].more_ranks = 2;
  EXPECT_THAT(error_of([&] { write_topology(topology); }),
              HasSubstr("more_ranks: expected more than few_ranks"));
}

}  // namespace
