// SPDX-License-Identifier: Apache-2.0
// Topologies as text: what is written is read back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "tests/collectives/simulator/topology/valid_topology.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;

/// Draws topologies that a file can say.
class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  Topology topology() {
    Topology t;
    t.name = "drawn";
    t.description = "quoted \" and \\ and \xC3\xA9";
    t.nodes = whole(1, 40);
    t.ranks_per_node = whole(1, 40);
    t.round_seconds = number(0, 1);
    t.streams = number(0, 1) < 0.5;
    t.groups = !t.streams && whole(0, 1);
    t.source = text();
    t.intra_node = link();
    if (t.nodes > 1) t.inter_node = link();
    if (t.nodes > 1 && whole(0, 1)) t.spine = link();
    t.device.kernel = rate();
    t.device.copy = rate();
    t.device.copy.flops_per_second = 1;
    t.device.combine = rate();
    if (whole(0, 1)) t.device.cache = {number(1, 1e12), number(0, 9), text()};
    for (int i = whole(0, 3); i > 0; --i) t.device.kernels["kernel " + std::to_string(i)] = rate();
    if (whole(0, 1))
      t.calibration = {text(), whole(1, 1000), whole(0, 99), whole(100, 1 << 30), number(0, 2)};
    return t;
  }

 private:
  int whole(int least, int most) { return std::uniform_int_distribution(least, most)(random_); }
  double number(double least, double most) { return std::uniform_real_distribution(least, most)(random_); }
  std::string text() { return "measured " + std::to_string(random_()); }

  Curve curve() {
    Curve curve;
    Curve::Point point;
    for (int i = whole(0, 1) * whole(2, 9); i > 0; --i) {
      point = {point.bytes + number(1, 1e6), point.seconds + (i == 1 ? 1e-9 : whole(0, 1) * number(0, 1))};
      curve.points.push_back(point);
    }
    return curve;
  }

  LinkModel link() {
    LinkModel link;
    link.latency_seconds = number(0, 1);
    link.overhead_seconds = number(0, 1);
    link.bytes_per_second = number(1, 1e12);
    link.measured = curve();
    link.measured_idle = curve();
    link.moved_by = whole(0, 1) ? Transport::wire : Transport::engine;
    link.node_bytes_per_second = whole(0, 1) * number(1, 1e12);
    link.node_measured = curve();
    link.source = text();
    return link;
  }

  Rate rate() {
    Rate rate;
    rate.launch_seconds = number(0, 1);
    rate.flops_per_second = number(1, 1e15);
    rate.bytes_per_second = number(1, 1e13);
    rate.measured = curve();
    rate.node_measured = curve();
    rate.source = text();
    return rate;
  }

  std::mt19937 random_;
};

void expect_same(const Curve& a, const Curve& b) {
  ASSERT_EQ(a.points.size(), b.points.size());
  for (std::size_t i = 0; i < a.points.size(); ++i) {
    EXPECT_EQ(a.points[i].bytes, b.points[i].bytes);
    EXPECT_EQ(a.points[i].seconds, b.points[i].seconds);
  }
}

void expect_same(const LinkModel& a, const LinkModel& b) {
  EXPECT_EQ(a.latency_seconds, b.latency_seconds);
  EXPECT_EQ(a.overhead_seconds, b.overhead_seconds);
  EXPECT_EQ(a.bytes_per_second, b.bytes_per_second);
  EXPECT_EQ(a.moved_by, b.moved_by);
  EXPECT_EQ(a.node_bytes_per_second, b.node_bytes_per_second);
  expect_same(a.measured_idle, b.measured_idle);
  EXPECT_EQ(a.source, b.source);
  expect_same(a.measured, b.measured);
  expect_same(a.node_measured, b.node_measured);
}

void expect_same(const Rate& a, const Rate& b) {
  EXPECT_EQ(a.launch_seconds, b.launch_seconds);
  EXPECT_EQ(a.flops_per_second, b.flops_per_second);
  EXPECT_EQ(a.bytes_per_second, b.bytes_per_second);
  EXPECT_EQ(a.source, b.source);
  expect_same(a.measured, b.measured);
  expect_same(a.node_measured, b.node_measured);
}

void expect_same(const DeviceRates& a, const DeviceRates& b) {
  expect_same(a.kernel, b.kernel);
  expect_same(a.copy, b.copy);
  expect_same(a.combine, b.combine);
  EXPECT_EQ(a.cache.bytes, b.cache.bytes);
  EXPECT_EQ(a.cache.slowdown, b.cache.slowdown);
  EXPECT_EQ(a.cache.source, b.cache.source);
  ASSERT_EQ(a.kernels.size(), b.kernels.size());
  for (const auto& [name, rate] : a.kernels) expect_same(rate, b.kernels.at(name));
}

void expect_same(const Calibration& a, const Calibration& b) {
  EXPECT_EQ(a.stands_on, b.stands_on);
  EXPECT_EQ(a.most_ranks, b.most_ranks);
  EXPECT_EQ(a.least_bytes, b.least_bytes);
  EXPECT_EQ(a.most_bytes, b.most_bytes);
  EXPECT_EQ(a.residual, b.residual);
}

void expect_same(const Topology& a, const Topology& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.description, b.description);
  EXPECT_EQ(a.nodes, b.nodes);
  EXPECT_EQ(a.ranks_per_node, b.ranks_per_node);
  EXPECT_EQ(a.round_seconds, b.round_seconds);
  EXPECT_EQ(a.streams, b.streams);
  EXPECT_EQ(a.groups, b.groups);
  EXPECT_EQ(a.source, b.source);
  expect_same(a.intra_node, b.intra_node);
  expect_same(a.inter_node, b.inter_node);
  ASSERT_EQ(a.spine.has_value(), b.spine.has_value());
  if (a.spine) expect_same(*a.spine, *b.spine);
  expect_same(a.device, b.device);
  expect_same(a.calibration, b.calibration);
}

TEST(TopologyText, ComesBackAsItWasWritten) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const Topology topology = Draw(seed).topology();
    const std::string text = write_topology(topology);
    const Topology back = parse_topology(text, "back");
    expect_same(topology, back);
    EXPECT_EQ(write_topology(back), text);
  }
}

TEST(TopologyText, GetsTheCalibrationsSourceWhereThereIsNoOther) {
  Topology topology = Draw(1).topology();
  topology.calibration = {"ping-pongs of today", 8, 8, 4096, 0.1};
  topology.intra_node.source = topology.device.copy.source = "";
  const Topology back = parse_topology(write_topology(topology), "back");
  EXPECT_EQ(back.intra_node.source, "ping-pongs of today");
  EXPECT_EQ(back.device.copy.source, "ping-pongs of today");
  EXPECT_EQ(back.device.kernel.source, topology.device.kernel.source);
}

TEST(TopologyText, IsNotWrittenWhereNobodyCouldReadIt) {
  const auto error_of_writing = [](const std::function<void(Topology&)>& spoil) {
    Topology topology = Draw(1).topology();
    spoil(topology);
    return error_of([&] { write_topology(topology); });
  };
  EXPECT_EQ(error_of_writing([](Topology&) {}), "no error");
  EXPECT_THAT(error_of_writing([](Topology& t) { t.intra_node.latency_seconds = std::nan(""); }),
              HasSubstr("links.intra_node.latency_seconds: expected a number"));
  EXPECT_THAT(error_of_writing([](Topology& t) { t.device.copy.source = t.calibration.stands_on = ""; }),
              HasSubstr("device.copy.source"));
}

TEST(TopologyText, MayHaveTheKeysOfEarlierVersions) {
  std::string old = valid().dump();
  for (std::size_t at; (at = old.find("_per_")) != std::string::npos;) old.replace(at, 5, "_a_");
  EXPECT_THAT(old, HasSubstr("ranks_a_node"));
  expect_same(parse_topology(old, "old"), parse_topology(valid().dump(), "new"));
}

TEST(TopologyText, MayLeaveOutWhatHasADefault) {
  const Topology topology = parse_topology(valid().dump(), "mine");
  EXPECT_EQ(topology.round_seconds, 0);
  EXPECT_FALSE(topology.streams);
  EXPECT_FALSE(topology.groups);
  EXPECT_EQ(topology.intra_node.overhead_seconds, 0);
  EXPECT_EQ(topology.intra_node.moved_by, Transport::wire);
  EXPECT_EQ(topology.intra_node.node_bytes_per_second, 0);
  EXPECT_EQ(topology.device.copy.launch_seconds, 0);
  EXPECT_DOUBLE_EQ(topology.inter_node.busy_seconds(800), 2e-6);
  EXPECT_FALSE(topology.spine);
  EXPECT_EQ(error_without("/calibration"), "no error");
}

}  // namespace
