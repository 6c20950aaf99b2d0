// SPDX-License-Identifier: Apache-2.0
// What must hold of a simulated round, whatever the schedules.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "collectives/schedule/check.hpp"
#include "collectives/simulator/simulate.hpp"
#include "tests/collectives/simulator/timeline_check.hpp"
#include "tests/collectives/simulator/uniform_machine.hpp"

namespace baton {

/// Schedules run in virtual time with the bytes and hops that their proof counts.
inline Simulation expect_simulates(const std::vector<Schedule>& schedules, const Topology& topology) {
  const Counts counts = check("test", schedules);
  const Simulation simulation = simulate(source_of(schedules), topology, true);
  EXPECT_EQ(simulation.busiest_sent_bytes, counts.busiest_sent_bytes());
  EXPECT_EQ(simulation.hops, counts.hops);
  std::int64_t steps = 0, messages = 0;
  std::set<std::int64_t> sizes;
  for (const Traffic& rank : counts.ranks) messages += rank.messages;
  for (const Schedule& schedule : schedules) {
    steps += static_cast<std::int64_t>(schedule.steps().size());
    for (const Step& step : schedule.steps())
      if (step.verb == Verb::send) sizes.insert(step.reads[0].bytes());
  }
  EXPECT_EQ(simulation.steps, steps);
  EXPECT_EQ(2 * simulation.messages, messages);
  EXPECT_EQ(simulation.least_message_bytes, sizes.empty() ? 0 : *sizes.begin());
  EXPECT_EQ(simulation.most_message_bytes, sizes.empty() ? 0 : *sizes.rbegin());
  expect_possible(schedules, simulation.timeline);
  return simulation;
}

}  // namespace baton
