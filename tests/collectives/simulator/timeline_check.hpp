// SPDX-License-Identifier: Apache-2.0
// What must hold of the times of any round, whatever the executor.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "collectives/executors/timing.hpp"
#include "collectives/schedule/orders.hpp"

namespace baton {

/// Every step of every rank ran once, after those it waits for, and no message came before it was
/// sent.
inline void expect_possible(std::span<const Schedule> schedules, std::span<const StepTime> times) {
  const Matching matching("test", schedules);
  std::vector<const StepTime*> time_of(matching.steps());
  ASSERT_EQ(times.size(), time_of.size());
  for (const StepTime& time : times) {
    ASSERT_LT(time.step, static_cast<int>(schedules[time.rank].steps().size()));
    const StepTime*& place = time_of[matching.number(time.rank, time.step)];
    ASSERT_EQ(place, nullptr) << "rank " << time.rank << " tells of step " << time.step << " twice";
    place = &time;
  }
  for (int number = 0; number < matching.steps(); ++number) {
    const StepTime& time = *time_of[number];
    EXPECT_GE(time.start_seconds, 0) << matching.name(number);
    EXPECT_GE(time.finish_seconds, time.start_seconds) << matching.name(number);
    for (int before : matching.step(number).waits_for)
      EXPECT_GE(time.start_seconds, time_of[matching.number(time.rank, before)]->finish_seconds)
          << matching.name(number) << " started before step " << before << " had finished";
    if (matching.step(number).verb == Verb::recv) {
      EXPECT_GE(time.finish_seconds, time_of[matching.partner(number)]->start_seconds)
          << matching.name(number);
    }
  }
}

/// A ring in which every verb has its part: each rank's kernel makes a value, the next one takes
/// and hands it on.
inline std::vector<Schedule> traced_ring(int ranks) {
  std::vector<Schedule> schedules;
  for (int r = 0; r < ranks; ++r) {
    Schedule s(r, ranks);
    const Slice own = s.input("own", 64), made = s.scratch("made", 64), taken = s.scratch("taken", 64),
                into = s.output("into", 64);
    const auto hand_on = [](const HostOperands& x) {
      for (std::size_t i = 0; i < x.writes[0].size(); ++i) x.writes[0][i] = x.reads[0][i] + 1;
    };
    s.compute({.name = "make", .body = hand_on, .flops = 64, .bytes = 512}, {made}, {own});
    for (int k = 0; k < 4; ++k) {
      s.send((r + 1) % ranks, made.block(k, 4));
      s.recv(taken.block(k, 4), (r + ranks - 1) % ranks);
      s.copy(into.block(k, 4), taken.block(k, 4));
    }
    s.compute({.name = "end", .body = hand_on, .flops = 64, .bytes = 512}, {into}, {into});
    schedules.push_back(std::move(s));
  }
  return schedules;
}

}  // namespace baton
