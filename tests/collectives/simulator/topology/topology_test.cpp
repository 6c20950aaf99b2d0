// SPDX-License-Identifier: Apache-2.0
#include "collectives/simulator/topology/topology.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

namespace {

using namespace baton;
using nlohmann::json;
using testing::AnyOf;
using testing::HasSubstr;

const Curve bent{{{100, 10}, {200, 20}, {400, 100}}};

TEST(TopologyCurve, GoesThroughItsPointsAndStraightBetweenThem) {
  EXPECT_DOUBLE_EQ(bent.seconds(100), 10);
  EXPECT_DOUBLE_EQ(bent.seconds(200), 20);
  EXPECT_DOUBLE_EQ(bent.seconds(400), 100);
  EXPECT_DOUBLE_EQ(bent.seconds(150), 15);
  EXPECT_DOUBLE_EQ(bent.seconds(300), 60);
}

TEST(TopologyCurve, GoesOnWithItsFirstAndItsLastSlope) {
  EXPECT_DOUBLE_EQ(bent.seconds(50), 5);
  EXPECT_DOUBLE_EQ(bent.seconds(0), 0);
  EXPECT_DOUBLE_EQ(bent.seconds(500), 140);
}

TEST(TopologyCurve, IsNeverLessThanZero) {
  const Curve steep{{{100, 1}, {200, 100}}};
  EXPECT_DOUBLE_EQ(steep.seconds(0), 0);
}

TEST(TopologyCurve, OfAStraightLineIsThatLineEverywhere) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> step(1, 1e6);
  for (int trial = 0; trial < 100; ++trial) {
    const double alpha = step(random) * 1e-9, slope = 1 / (step(random) * 1e6);
    Curve curve;
    double bytes = 0;
    for (int i = 0; i < 2 + trial % 7; ++i)
      curve.points.push_back({bytes += step(random), alpha + slope * bytes});
    for (Curve::Point& point : curve.points) point.seconds = alpha + slope * point.bytes;
    for (int i = 0; i < 20; ++i) {
      const double at = step(random) * 10;
      EXPECT_NEAR(curve.seconds(at), alpha + slope * at, 1e-9 * (alpha + slope * at));
    }
  }
}

TEST(TopologyLink, TakesOverheadAndRateOrWhatWasMeasured) {
  LinkModel link{.latency_seconds = 3, .overhead_seconds = 2, .bytes_per_second = 10};
  EXPECT_DOUBLE_EQ(link.busy_seconds(100), 12);
  EXPECT_DOUBLE_EQ(link.message_seconds(100), 15);
  link.measured = bent;
  EXPECT_DOUBLE_EQ(link.busy_seconds(150), 15);
  EXPECT_DOUBLE_EQ(link.message_seconds(150), 18);
}

TEST(TopologyLink, TakesAsLongOnAnIdleNetworkAsWasMeasuredThere) {
  LinkModel link{.latency_seconds = 3, .overhead_seconds = 2, .bytes_per_second = 10};
  link.measured_idle = {{{100, 50}, {200, 51}}};
  EXPECT_DOUBLE_EQ(link.message_seconds(150), 50.5);
  EXPECT_DOUBLE_EQ(link.latency(150), 50.5 - 17);
  EXPECT_DOUBLE_EQ(link.latency(10000), 0) << "no message is there before it has left";
}

TEST(TopologyLink, HoldsWhatANodeSharesByRateOrAsMeasured) {
  LinkModel link;
  EXPECT_EQ(link.node_seconds(100), 0);
  link.node_bytes_per_second = 20;
  EXPECT_DOUBLE_EQ(link.node_seconds(100), 5);
  link.node_measured = bent;
  EXPECT_DOUBLE_EQ(link.node_seconds(150), 15);
}

TEST(TopologyRate, HoldsTheMemoryOfItsNodeOnlyWhereThatWasMeasured) {
  Rate rate{.launch_seconds = 1, .flops_per_second = 10, .bytes_per_second = 100};
  EXPECT_EQ(rate.node_seconds(150), 0);
  rate.node_measured = bent;
  EXPECT_DOUBLE_EQ(rate.node_seconds(150), 15);
}

TEST(TopologyRate, IsALaunchAndTheSlowerOfOperationsAndBytes) {
  Rate rate{.launch_seconds = 1, .flops_per_second = 10, .bytes_per_second = 100};
  EXPECT_DOUBLE_EQ(rate.seconds(50, 100), 6);
  EXPECT_DOUBLE_EQ(rate.seconds(10, 300), 4);
  EXPECT_DOUBLE_EQ(rate.seconds(0, 0), 1);
  rate.measured = bent;
  EXPECT_DOUBLE_EQ(rate.seconds(1e9, 300), 60);
}

TEST(TopologyDevice, KnowsKernelsByNameAndHasOneRateForTheRest) {
  DeviceRates device;
  device.kernel.flops_per_second = 7;
  device.kernels["scores"].flops_per_second = 8;
  EXPECT_EQ(device.rate_of("scores").flops_per_second, 8);
  EXPECT_EQ(device.rate_of("score").flops_per_second, 7);
}

TEST(TopologyLink, BetweenTwoRanksIsThatOfTheirPlaces) {
  Topology topology;
  topology.nodes = 3;
  topology.ranks_per_node = 4;
  topology.spine.emplace();
  for (int from = 0; from < topology.ranks(); ++from)
    for (int to = 0; to < topology.ranks(); ++to) {
      const bool same_node = from / 4 == to / 4, same_place = from % 4 == to % 4;
      const LinkModel* expected = same_node    ? &topology.intra_node
                                  : same_place ? &topology.inter_node
                                               : &*topology.spine;
      EXPECT_EQ(&topology.link(from, to), expected) << from << " to " << to;
    }
  topology.spine.reset();
  EXPECT_EQ(&topology.link(0, 5), &topology.inter_node);
}

const std::filesystem::path folder = TOPOLOGIES;

std::string documentation() {
  std::ifstream page(folder.parent_path() / "docs" / "topologies.md");
  return {std::istreambuf_iterator<char>(page), {}};
}

std::vector<std::filesystem::path> shipped_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

TEST(ShippedTopologies, AreReadAndAreWhatTheirNamesSay) {
  const std::map<std::string, int> ranks = {{"b200-8", 8},
                                            {"b300-8", 8},
                                            {"dgx-a100-2x8-100g", 16},
                                            {"dgx-a100-8x8", 64},
                                            {"dgx-h100-2048x8", 16384},
                                            {"dgx-h100-32x8", 256},
                                            {"dgx-h100-8", 8},
                                            {"gb200-4", 4},
                                            {"gb300-4", 4},
                                            {"h100-8-slow-ethernet", 32},
                                            {"h200-4", 4},
                                            {"h200-4-nccl", 4},
                                            {"hgx-h200-8", 8},
                                            {"l40s-8", 8},
                                            {"pcie-4xa10", 4},
                                            {"rtx-pro-6000-8", 8},
                                            {"shared_memory_host", 64},
                                            {"xeon-16", 16}};
  ASSERT_EQ(shipped_files().size(), ranks.size());
  for (const auto& file : shipped_files()) {
    const Topology topology = read_topology(file.string());
    EXPECT_EQ(topology.name, file.stem());
    EXPECT_EQ(topology.ranks(), ranks.at(topology.name)) << file;
  }
}

/// Every number or word of `section`, with a source that speaks of it by its key.
void expect_each_key_in_source(const json& section, const std::string& where) {
  const auto source = section.at("source").get<std::string>();
  EXPECT_THAT(source,
              AnyOf(HasSubstr("measured"), HasSubstr("published"), HasSubstr("vendor"), HasSubstr("assumed")))
      << where;
  for (const auto& [key, value] : section.items())
    EXPECT_TRUE(key == "source" || source.find(key + ":") != std::string::npos ||
                source.find(key + ",") != std::string::npos)
        << where << ": " << key;
}

TEST(ShippedTopologies, SayOfEveryNumberWhereItComesFrom) {
  for (const auto& file : shipped_files()) {
    const json topology = json::parse(std::ifstream(file));
    const std::string name = file.filename().string();
    expect_each_key_in_source(topology.at("machine"), name + " machine");
    for (const auto& [link, section] : topology.at("links").items())
      expect_each_key_in_source(section, name + " " + link);
    for (const auto& [step, section] : topology.at("device").items()) {
      if (step != "kernels") expect_each_key_in_source(section, name + " " + step);
      if (step == "kernels")
        for (const auto& [kernel, rate] : section.items())
          expect_each_key_in_source(rate, name + " " + kernel);
    }
  }
}

TEST(ShippedTopologies, LookLikeTheExampleOfTheDocumentation) {
  const std::string text = documentation();
  const auto start = text.find("```json\n") + 8;
  const Topology example =
      parse_topology(text.substr(start, text.find("```", start) - start), "docs/topologies.md");
  EXPECT_EQ(example.ranks(), 8);
  EXPECT_EQ(example.inter_node.node_bytes_per_second, 12e9);
}

TEST(ShippedTopologies, AreAllInTheDocumentation) {
  const std::string text = documentation();
  for (const auto& file : shipped_files())
    EXPECT_NE(text.find("`" + file.filename().string() + "`"), std::string::npos) << file;
}

}  // namespace
