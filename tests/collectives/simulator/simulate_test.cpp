// SPDX-License-Identifier: Apache-2.0
#include "collectives/simulator/simulate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "tests/collectives/simulator/timeline_check.hpp"
#include "tests/collectives/simulator/uniform_machine.hpp"

namespace {

using namespace baton;
using testing::ElementsAre;

/// Messages of `bytes` hold a port for `bytes` seconds and are there 100 s later.
const LinkModel wire{.latency_seconds = 100, .bytes_per_second = 1};

LinkModel engine(double latency) {
  return {.latency_seconds = latency, .bytes_per_second = 1, .moved_by = Transport::engine};
}

/// A machine whose kernels take as many seconds as they have operations, and copies one second a
/// byte that they read.
Topology timed_steps(int ranks, const LinkModel& link, int nodes = 1) {
  Topology topology = uniform_machine(ranks, link, nodes);
  topology.device.kernel.flops_per_second = 1;
  topology.device.copy.bytes_per_second = 2;
  return topology;
}

Slice seconds_long(Schedule& s, const char* name, int seconds) {
  return s.scratch(name, seconds / element_bytes);
}

void work(Schedule& s, double seconds, const Slice& writes, const Slice& reads) {
  s.compute({.name = "work", .body = nullptr, .flops = seconds}, {writes}, {reads});
}

std::vector<double> rank_seconds(std::vector<Schedule> schedules, const Topology& topology) {
  return simulate(source_of(std::move(schedules)), topology).rank_seconds;
}

TEST(Simulator, AMessageHoldsItsSenderForItsBytesAndComesALatencyLater) {
  const auto text = [](Schedule& s) {
    const Slice x = seconds_long(s, "x", 40);
    if (s.rank() == 0) s.send(1, x);
    if (s.rank() == 1) s.recv(x, 0);
  };
  EXPECT_THAT(rank_seconds(record(2, text), uniform_machine(2, wire)), ElementsAre(40, 140));
}

TEST(Simulator, DirectionsOfAWireAreApart) {
  const auto swap = [](Schedule& s) {
    s.send(1 - s.rank(), seconds_long(s, "x", 40));
    s.recv(seconds_long(s, "y", 40), 1 - s.rank());
  };
  EXPECT_THAT(rank_seconds(record(2, swap), uniform_machine(2, wire)), ElementsAre(140, 140));
}

TEST(Simulator, AnEngineSendsAndReceivesOneAfterTheOther) {
  const auto swap = [](Schedule& s) {
    s.send(1 - s.rank(), seconds_long(s, "x", 40));
    s.recv(seconds_long(s, "y", 40), 1 - s.rank());
  };
  EXPECT_THAT(rank_seconds(record(2, swap), uniform_machine(2, engine(10))), ElementsAre(80, 80));
  EXPECT_THAT(rank_seconds(record(2, swap), uniform_machine(2, engine(100))), ElementsAre(140, 140));
}

TEST(Simulator, AnEngineLetsMessagesGoBeforeACopyThatNobodyWaitsFor) {
  const auto text = [](Schedule& s) {
    const Slice x = seconds_long(s, "x", 40), y = seconds_long(s, "y", 20), z = seconds_long(s, "z", 20);
    if (s.rank() == 0) s.copy(y, z);
    if (s.rank() == 0) s.send(1, x);
    if (s.rank() == 1) s.recv(x, 0);
  };
  EXPECT_THAT(rank_seconds(record(2, text), timed_steps(2, engine(10))), ElementsAre(60, 50));
  EXPECT_THAT(rank_seconds(record(2, text), timed_steps(2, wire)), ElementsAre(40, 140));
}

TEST(Simulator, WhatAMessageWaitsForGoesFirst) {
  for (const LinkModel& link : {wire, engine(100)}) {
    const auto text = [](Schedule& s) {
      const Slice x = seconds_long(s, "x", 40), y = seconds_long(s, "y", 40);
      if (s.rank() == 0) s.copy(x, y);
      if (s.rank() == 0) s.send(1, x);
      if (s.rank() == 1) s.recv(x, 0);
    };
    EXPECT_THAT(rank_seconds(record(2, text), timed_steps(2, link)), ElementsAre(80, 180));
  }
}

/// On every rank of node 0 a message to its rail peer on node 1.
std::vector<Schedule> rails(int ranks_per_node, int seconds) {
  return record(2 * ranks_per_node, [=](Schedule& s) {
    const Slice x = seconds_long(s, "x", seconds);
    if (s.rank() < ranks_per_node) s.send(s.rank() + ranks_per_node, x);
    if (s.rank() >= ranks_per_node) s.recv(x, s.rank() - ranks_per_node);
  });
}

TEST(Simulator, TheRanksOfANodeShareItsCard) {
  LinkModel card = wire;
  const auto seconds = [&](double rate) {
    card.node_bytes_per_second = rate;
    return simulate(source_of(rails(4, 40)), uniform_machine(4, card, 2)).seconds;
  };
  EXPECT_DOUBLE_EQ(seconds(0), 140) << "no card, nothing to share";
  EXPECT_DOUBLE_EQ(seconds(4), 3 * 10 + 140) << "the last waits for three passages of 10 s";
  EXPECT_DOUBLE_EQ(seconds(0.5), 4 * 80 + 100) << "a card that is slower than a port";
}

TEST(Simulator, TheRanksOfANodeShareItsMemory) {
  LinkModel memory = engine(0);
  memory.node_bytes_per_second = 2;
  const auto pairs = record(8, [](Schedule& s) {
    const Slice x = seconds_long(s, "x", 40);
    if (s.rank() % 2 == 0) s.send(s.rank() + 1, x);
    if (s.rank() % 2 == 1) s.recv(x, s.rank() - 1);
  });
  EXPECT_DOUBLE_EQ(simulate(source_of(pairs), uniform_machine(8, memory)).seconds, 3 * 20 + 40);
  EXPECT_DOUBLE_EQ(simulate(source_of(pairs), uniform_machine(2, memory, 4)).seconds, 40);
}

TEST(Simulator, ALocalStepHoldsTheMemoryOfItsNode) {
  Topology topology = timed_steps(4, wire);
  topology.device.copy.node_measured = {{{0, 0}, {80, 30}}};
  const auto copies =
      record(4, [](Schedule& s) { s.copy(seconds_long(s, "x", 40), seconds_long(s, "y", 40)); });
  EXPECT_DOUBLE_EQ(simulate(source_of(copies), topology).seconds, 4 * 30);
}

TEST(Simulator, EveryHopOfAChainTakesTheLinkOfItsPlaces) {
  const Shape shape{.heads = 1, .d_k = 5, .d_v = 2};  // 40 B
  Topology topology = uniform_machine(4, wire, 3);
  topology.inter_node.latency_seconds = 1000;
  const ScheduleSource chain = source_of(find_collective("ring_scan"), shape, {.ranks = 12});
  EXPECT_DOUBLE_EQ(simulate(chain, topology).seconds, 9 * 140 + 2 * 1040);
  topology.spine = topology.inter_node;
  topology.spine->latency_seconds = 3000;
  EXPECT_DOUBLE_EQ(simulate(chain, topology).seconds, 9 * 140 + 2 * 3040) << "no hop is on a rail";
}

TEST(Simulator, ARoundBeginsWithWhatEveryRoundCosts) {
  Topology topology = uniform_machine(3, wire);
  topology.round_seconds = 7;
  const Shape shape{.heads = 1, .d_k = 5, .d_v = 2};
  for (int ranks : {1, 3}) {
    const auto source = source_of(find_collective("ring_scan"), shape, {.ranks = ranks});
    const Simulation simulation = simulate(source, topology, true);
    EXPECT_DOUBLE_EQ(simulation.seconds, 7 + (ranks - 1) * 140);
    for (double seconds : simulation.rank_seconds) EXPECT_GE(seconds, 7);
    for (const StepTime& time : simulation.timeline) EXPECT_GE(time.start_seconds, 7);
  }
}

TEST(Simulator, LocalWorkHidesAMessageAndWorkWaitsForWork) {
  const auto text = [](int jobs, double seconds) {
    return record(2, [=](Schedule& s) {
      const Slice x = seconds_long(s, "x", 40), y = seconds_long(s, "y", 40);
      if (s.rank() == 0) s.send(1, x);
      if (s.rank() == 1) s.recv(x, 0);
      for (int i = 0; i < jobs; ++i) work(s, seconds, s.scratch("made", 1), y);
    });
  };
  for (const LinkModel& link : {wire, engine(100)}) {
    const Topology topology = timed_steps(2, link);
    EXPECT_THAT(rank_seconds(text(1, 90), topology), ElementsAre(90, 140));
    EXPECT_THAT(rank_seconds(text(1, 300), topology), ElementsAre(300, 300));
    EXPECT_THAT(rank_seconds(text(3, 90), topology), ElementsAre(270, 270));
  }
}

TEST(Simulator, WorkThatAMessageWaitsForIsNotHidden) {
  const auto text = [](Schedule& s) {
    const Slice x = seconds_long(s, "x", 40), y = seconds_long(s, "y", 40);
    if (s.rank() == 0) work(s, 30, x, y);
    if (s.rank() == 0) s.send(1, x);
    if (s.rank() == 1) s.recv(x, 0);
    if (s.rank() == 1) work(s, 50, y, x);
  };
  EXPECT_THAT(rank_seconds(record(2, text), timed_steps(2, wire)), ElementsAre(70, 30 + 140 + 50));
}

TEST(Simulator, ReadyMessagesLeaveInTheOrderOfTheText) {
  // Rank 2 sends to rank 3 before rank 1, whose receive stands earlier in any order of ranks.
  const auto text = [](Schedule& s) {
    const Slice x = seconds_long(s, "x", 40);
    if (s.rank() == 2) s.send(3, x);
    if (s.rank() == 2) s.send(1, x);
    if (s.rank() == 1 || s.rank() == 3) s.recv(x, 2);
  };
  EXPECT_THAT(rank_seconds(record(4, text), uniform_machine(4, wire)), ElementsAre(0, 180, 80, 140));
}

/// A scan on two levels with all that can queue, on slow memory and slow cards.
Simulation busy_simulation(const std::vector<Schedule>& schedules) {
  LinkModel link{.latency_seconds = 3, .overhead_seconds = 0.1, .bytes_per_second = 7};
  link.node_bytes_per_second = 11;
  Topology topology = uniform_machine(4, link, 4);
  topology.inter_node.latency_seconds = 17;
  topology.device.combine.flops_per_second = topology.device.copy.bytes_per_second = 50;
  return simulate(source_of(schedules), topology, true);
}

TEST(Simulator, IsTheSameEveryTime) {
  const Shape shape{.heads = 2, .d_k = 8, .d_v = 3};
  const Split split{.ranks = 13, .blocks = 4, .ranks_per_node = 4};
  const auto schedules = build_all(find_collective("hierarchical_scan_chain"), shape, split);
  const Simulation one = busy_simulation(schedules), other = busy_simulation(schedules);
  EXPECT_EQ(one.seconds, other.seconds);
  EXPECT_EQ(one.rank_seconds, other.rank_seconds);
  ASSERT_EQ(one.timeline.size(), other.timeline.size());
  for (std::size_t i = 0; i < one.timeline.size(); ++i) {
    EXPECT_EQ(one.timeline[i].start_seconds, other.timeline[i].start_seconds);
    EXPECT_EQ(one.timeline[i].finish_seconds, other.timeline[i].finish_seconds);
  }
}

TEST(Simulator, TheTimelineIsPossible) {
  for (const char* name : {"all_scan", "two_shot", "hierarchical_scan", "bruck_all_gather"}) {
    const Split split{.ranks = 13, .blocks = 4, .ranks_per_node = 4};
    const auto schedules = build_all(find_collective(name), {.heads = 2, .d_k = 8, .d_v = 3}, split);
    const Simulation simulation = busy_simulation(schedules);
    expect_possible(schedules, simulation.timeline);
    double last = 0;
    for (const StepTime& time : simulation.timeline) last = std::max(last, time.finish_seconds);
    EXPECT_DOUBLE_EQ(simulation.seconds, last);
  }
}

/// Steps of one rank for which `key` says the same never overlap.
template <typename Key>
void expect_no_overlap(const std::vector<Schedule>& schedules, const std::vector<StepTime>& timeline,
                       const Key& key) {
  std::map<std::pair<int, int>, std::vector<StepTime>> by_server;
  for (const StepTime& time : timeline)
    by_server[{time.rank, key(schedules[time.rank].steps()[time.step].verb)}].push_back(time);
  for (auto& [server, times] : by_server) {
    std::sort(times.begin(), times.end(), [](auto& a, auto& b) { return a.start_seconds < b.start_seconds; });
    for (std::size_t i = 1; i < times.size(); ++i)
      EXPECT_GE(times[i].start_seconds, times[i - 1].finish_seconds * (1 - 1e-12)) << "rank " << server.first;
  }
}

TEST(Simulator, APortAndAnEngineDoOneThingAtATime) {
  for (const Collective* collective : collectives()) {
    const auto schedules = build_all(*collective, {.heads = 1, .d_k = 12, .d_v = 3}, {.ranks = 6});
    if (!schedules[1].natives().empty()) continue;
    const auto timeline_on = [&](const LinkModel& link) {
      Topology topology = timed_steps(6, link);
      topology.device.combine.flops_per_second = 1;
      return simulate(source_of(schedules), topology, true).timeline;
    };
    const auto on_wires = [](Verb verb) { return verb == Verb::send ? 0 : verb == Verb::recv ? 1 : 2; };
    expect_no_overlap(schedules, timeline_on(wire), on_wires);
    expect_no_overlap(schedules, timeline_on(engine(0)), [](Verb) { return 0; });
  }
}

TEST(Simulator, ARankAloneNeedsNobody) {
  for (const Collective* collective : collectives()) {
    const ScheduleSource source = source_of(*collective, {.heads = 1}, {.ranks = 1});
    if (!source.build(0).natives().empty()) continue;
    const Simulation simulation = simulate(source, uniform_machine(1, wire));
    EXPECT_EQ(simulation.seconds, 0) << collective->name;
    EXPECT_EQ(simulation.messages, 0);
    EXPECT_EQ(simulation.hops, 0);
    EXPECT_THAT(simulation.rank_seconds, ElementsAre(0));
  }
}

}  // namespace
