// SPDX-License-Identifier: Apache-2.0
// What the simulator says of schedules that cannot run, and of those that it does not take on.
#include "collectives/schedule/errors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/collectives/simulator/uniform_machine.hpp"

namespace {

using namespace baton;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const LinkModel wire{.latency_seconds = 100, .bytes_per_second = 1};

std::string error_of(const ScheduleSource& source) {
  try {
    simulate(source, uniform_machine(source.ranks, wire));
  } catch (const ScheduleError& error) {
    return error.what();
  }
  return "no error";
}

TEST(SimulatorErrors, AMessageWithoutAPartnerIsAnError) {
  const auto text = [](Schedule& s) {
    s.copy(s.scratch("a", 1), s.scratch("b", 1));
    if (s.rank() == 1) s.recv(s.scratch("x", 4), 0);
  };
  EXPECT_THAT(error_of(source_of(record(2, text))),
              AllOf(HasSubstr("test: rank 1, step 1"), HasSubstr("errors_test.cpp:"),
                    HasSubstr("rank 0 has no send for this message")));
}

TEST(SimulatorErrors, AMessageOfTwoSizesIsAnError) {
  const auto text = [](Schedule& s) {
    if (s.rank() == 0) s.send(1, s.scratch("x", 4));
    if (s.rank() == 1) s.recv(s.scratch("x", 5), 0);
  };
  EXPECT_THAT(error_of(source_of(record(2, text))),
              AllOf(HasSubstr("test: rank 0, step 0"), HasSubstr("errors_test.cpp:"),
                    HasSubstr("rank 1 has another size")));
}

TEST(SimulatorErrors, AMessageOfTwoTypesIsAnError) {
  const auto text = [](Schedule& s) {
    if (s.rank() == 0) s.send(1, s.scratch("x", 4, Dtype::bf16));
    if (s.rank() == 1) s.recv(s.scratch("x", 2), 0);
  };
  EXPECT_THAT(error_of(source_of(record(2, text))),
              AllOf(HasSubstr("test: rank 0, step 0"), HasSubstr("another size or type")));
}

TEST(SimulatorErrors, ADeadlockIsAnError) {
  const auto text = [](Schedule& s) {
    const Slice x = s.scratch("x", 4);
    s.recv(x, 1 - s.rank());
    s.send(1 - s.rank(), x);
  };
  EXPECT_THAT(error_of(source_of(record(2, text))),
              AllOf(HasSubstr("deadlock: test: rank 0, step 0 (recv"), HasSubstr("never starts")));
}

TEST(SimulatorErrors, ANativeIsAnError) {
  const auto text = [](Schedule& s) {
    s.copy(s.scratch("a", 1), s.scratch("b", 1));
    if (s.rank() == 1) s.native("somebodys_scan", 1, {s.scratch("x", 4)}, {s.scratch("y", 4)});
  };
  EXPECT_THAT(error_of(source_of(record(2, text))),
              AllOf(HasSubstr("test: rank 1, step 1"), HasSubstr("errors_test.cpp:"),
                    HasSubstr("somebodys_scan is a native")));
}

TEST(SimulatorErrors, RefusesWhatItCannotDo) {
  const Topology small = uniform_machine(4, wire), large = uniform_machine(16384, wire);
  const auto refusal = [](const char* name, const Split& split, const Topology& topology) {
    return unsupported_by_simulator(source_of(find_collective(name), Shape{}, split), topology).reason();
  };
  EXPECT_EQ(refusal("all_scan", {.ranks = 4}, small), "");
  EXPECT_THAT(refusal("all_scan", {.ranks = 5}, small), HasSubstr("5 ranks do not fit on uniform"));
  EXPECT_THAT(refusal("mpi_exscan", {.ranks = 4}, small), HasSubstr("mpi_exscan is a native"));
  EXPECT_EQ(refusal("all_scan", {.ranks = 16384, .blocks = 1000}, large), "");
  EXPECT_THAT(refusal("all_scan", {.ranks = 16384, .blocks = 1200}, large), HasSubstr("58 million steps"));
}

}  // namespace
