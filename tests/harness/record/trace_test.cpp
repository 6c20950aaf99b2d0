// SPDX-License-Identifier: Apache-2.0
#include "harness/record/trace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <vector>

#include "collectives/collective.hpp"
#include "tests/collectives/simulator/timeline_check.hpp"

namespace {

using namespace baton;
using Json = nlohmann::ordered_json;

const TraceTitle title{"all_scan/local/ranks:3", "local", 4, "abc"};

/// A round in which every step takes a microsecond and waits for nobody: as much at once as there
/// can be.
std::vector<StepTime> all_at_once(const std::vector<Schedule>& schedules) {
  std::vector<StepTime> times;
  for (const Schedule& schedule : schedules)
    for (int step = 0; step < static_cast<int>(schedule.steps().size()); ++step)
      times.push_back({schedule.home_rank(), step, 1e-7 * step, 1e-7 * step + 1e-6});
  return times;
}

/// The trace as a reader gets it: written and read again.
Json trace_of(const std::vector<Schedule>& schedules, const std::vector<StepTime>& times) {
  return Json::parse(chrome_trace(schedules, times, title));
}

std::vector<Json> events(const Json& trace, const std::string& phase) {
  std::vector<Json> found;
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == phase) found.push_back(event);
  return found;
}

/// The span of a step.
Json span_of(const Json& trace, int rank, int step) {
  for (const Json& span : events(trace, "X"))
    if (span["pid"] == rank && span["args"]["step"] == step) return span;
  return {};
}

bool holds(const Json& span, const Json& event) {
  const double ts = event["ts"], start = span["ts"], duration = span["dur"];
  return span["pid"] == event["pid"] && span["tid"] == event["tid"] && start <= ts && ts < start + duration;
}

TEST(Trace, EveryStepIsASpanAndEveryMessageAnArrowBetweenItsSpans) {
  const auto schedules = build_all(find_collective("all_scan"), Shape{1, 4, 4, 2}, {.ranks = 3, .blocks = 4});
  const Json trace = trace_of(schedules, all_at_once(schedules));
  const auto spans = events(trace, "X"), tails = events(trace, "s"), heads = events(trace, "f");
  EXPECT_EQ(spans.size(), 4u + 12u + 4u);
  ASSERT_EQ(tails.size(), 8u);
  ASSERT_EQ(heads.size(), tails.size());
  std::map<int, Json> head_of;
  for (const Json& head : heads) EXPECT_TRUE(head_of.emplace(head["id"], head).second);
  for (const Json& tail : tails) {
    const auto from = std::find_if(spans.begin(), spans.end(), [&](auto& span) { return holds(span, tail); });
    const auto to = std::find_if(spans.begin(), spans.end(),
                                 [&](auto& span) { return holds(span, head_of.at(tail["id"])); });
    ASSERT_TRUE(from != spans.end() && to != spans.end());
    EXPECT_EQ((*from)["cat"], "send");
    EXPECT_EQ((*to)["cat"], "recv");
    EXPECT_EQ((*from)["pid"].get<int>() + 1, (*to)["pid"].get<int>());
    const std::string sent = (*from)["name"], received = (*to)["name"];
    EXPECT_EQ(sent.substr(5, 2), received.substr(5, 2)) << "#n of both";
    EXPECT_LE((*from)["ts"].get<double>(), (*to)["ts"].get<double>());
  }
}

TEST(Trace, SpansOfOneRowNeverOverlap) {
  const auto schedules = traced_ring(4);
  const Json trace = trace_of(schedules, all_at_once(schedules));
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> rows;
  for (const Json& span : events(trace, "X"))
    rows[{span["pid"], span["tid"]}].emplace_back(span["ts"],
                                                  span["ts"].get<double>() + span["dur"].get<double>());
  for (auto& [row, times] : rows) {
    std::sort(times.begin(), times.end());
    for (std::size_t i = 1; i < times.size(); ++i) EXPECT_LE(times[i - 1].second, times[i].first + 1e-9);
  }
  std::set<std::tuple<int, int>> named;
  std::multiset<std::string> of_rank_0;
  for (const Json& event : events(trace, "M"))
    if (event["name"] == "thread_name") {
      EXPECT_TRUE(named.emplace(event["pid"], event["tid"]).second);
      if (event["pid"] == 0) of_rank_0.insert(event["args"]["name"].get<std::string>());
    }
  EXPECT_EQ(named.size(), rows.size());
  EXPECT_EQ(of_rank_0.count("compute"), 1u);
  EXPECT_EQ(of_rank_0.count("sends 4"), 1u);
}

TEST(Trace, SaysWhatAStepIs) {
  const auto schedules = traced_ring(2);
  const Json trace = trace_of(schedules, all_at_once(schedules));
  const Json kernel = span_of(trace, 0, 0), send = span_of(trace, 0, 1), copy = span_of(trace, 0, 3);
  EXPECT_EQ(kernel["name"], "make");
  EXPECT_EQ(kernel["args"]["flops"], 64);
  EXPECT_EQ(send["name"], "send #0 -> 1, 64 B");
  EXPECT_EQ(send["args"]["bytes"], 64);
  EXPECT_EQ(send["args"]["reads"], "made[0:16)");
  EXPECT_EQ(send["args"]["source"].get<std::string>().substr(0, 19), "timeline_check.hpp:");
  EXPECT_EQ(copy["name"], "copy");
  EXPECT_EQ(trace["otherData"]["case"], title.case_name);
  EXPECT_EQ(trace["otherData"]["executor"], "local");
  EXPECT_EQ(trace["otherData"]["commit"], "abc");
  EXPECT_EQ(trace["otherData"]["rounds"], 1);
}

TEST(Trace, AReceiveIsDrawnFromWhereItsMessageIsSent) {
  std::vector<Schedule> schedules{Schedule(0, 2), Schedule(1, 2)};
  schedules[0].send(1, schedules[0].input("own", 1 << 18));
  schedules[1].recv(schedules[1].output("into", 1 << 18), 0);
  const Json late = trace_of(schedules, {{1, 0, 1e-6, 9e-6}, {0, 0, 5e-6, 8e-6}});
  EXPECT_EQ(span_of(late, 1, 0)["ts"], 5.0);
  EXPECT_EQ(span_of(late, 1, 0)["dur"], 4.0);
  EXPECT_EQ(span_of(late, 1, 0)["args"]["posted"], 1.0);
  EXPECT_EQ(span_of(late, 1, 0)["name"], "recv #0 <- 0, 1 MiB");
  const Json early = trace_of(schedules, {{1, 0, 6e-6, 9e-6}, {0, 0, 5e-6, 5e-6}});
  EXPECT_EQ(span_of(early, 1, 0)["ts"], 6.0);
  EXPECT_EQ(span_of(early, 0, 0)["dur"], 1e-3) << "arrows need something to hold on to";
}

TEST(Trace, WhatNobodyTellsOfIsLeftOut) {
  const auto schedules = build_all(find_collective("all_scan"), Shape{1, 4, 4, 2}, {.ranks = 2, .blocks = 2});
  const Json trace = trace_of(schedules, {{0, 0, 0, 1}, {0, 1, 0, 1}, {1, 0, 0, 1}});
  EXPECT_EQ(events(trace, "X").size(), 3u);
  EXPECT_EQ(events(trace, "s").size(), 1u);
  EXPECT_EQ(events(trace, "f").size(), 1u);
}

}  // namespace
