// SPDX-License-Identifier: Apache-2.0
// Tests that run on an executor, and launch the ranks that it needs by themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "collectives/executors/executor.hpp"
#include "harness/process/world.hpp"

namespace baton {

/// The executor under test on any number of ranks, each made once: for some, connecting takes
/// longer than a test.
class ExecutorsUnderTest {
 public:
  ExecutorsUnderTest(const World& world, std::string name) : world_(world), name_(std::move(name)) {}

  const World& world() const { return world_; }
  const std::string& name() const { return name_; }
  /// False where so many ranks were not launched, since this machine lacks something for them.
  bool have(int ranks) const;
  /// The processes that hold ranks. Collective over the world.
  const Team& team(int ranks);
  /// To be called by the members of the team.
  Executor& on(int ranks);

 private:
  const World& world_;
  std::string name_;
  std::map<int, Team> teams_;
  std::map<int, std::unique_ptr<Executor>> made_;
};

/// How a program ends that tests nothing, since this machine lacks what the executor needs; CTest
/// calls that skipped.
inline constexpr int nothing_to_test_on = 77;

/// The `main` of a program "NAME EXECUTOR [GoogleTest's flags]", where "peer:2" stands for executor
/// peer with two ranks a GPU: launches four ranks where the executor has a process a rank, or as
/// many as this machine has what it needs for, gives all of them one `held_out_seed`, lets
/// `add_tests` register tests, runs them on all ranks, or on mpi and tcp a fifth of many unless
/// BATON_ALL_TESTS is set, and prints on rank 0 which failed and why, and how many were skipped for
/// which reason. Fails where no test ran.
int launched_tests(int argc, char** argv, const std::function<void(ExecutorsUnderTest&)>& add_tests);

}  // namespace baton
