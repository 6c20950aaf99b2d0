// SPDX-License-Identifier: Apache-2.0
// What answers the cases of one executor and number of ranks: processes that run and are timed, or a simulated machine.
#pragma once

#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "collectives/executors/timing.hpp"
#include "harness/options/options.hpp"
#include "harness/process/launch.hpp"
#include "harness/report/record.hpp"

namespace baton {

/// All calls are collective over the team; only its members may call anything but `team`.
class Testbed {
 public:
  explicit Testbed(Team team) : team_(std::move(team)) {}
  virtual ~Testbed() = default;
  Testbed(const Testbed&) = delete;
  Testbed& operator=(const Testbed&) = delete;

  const Team& team() const { return team_; }

  /// The line above the table that tells of the machine, or nothing.
  virtual std::string description() const = 0;
  /// How far apart the ranks start a round, in seconds.
  virtual double start_skew_seconds() const = 0;

  /// Builds, proves and prepares the record's question and fills in what it costs; why it cannot run, or nothing.
  virtual std::string prepare(Record& record) = 0;
  /// Compares with the oracle, before anything is timed.
  virtual void verify(Record& record) = 0;
  /// Fills in the samples, and compares once more what the timed rounds left.
  virtual void time(Record& record, benchmark::State& state) = 0;

  /// Runs the prepared question once more; when each step of each rank ran, on all members of the team. Nothing where
  /// the executor cannot tell.
  virtual std::vector<StepTime> run_traced(const Record& record) = 0;

 protected:
  /// Adds what this process found to what the others did.
  void note(Record& record, const Comparison& comparison) const;

 private:
  Team team_;
};

/// Processes and an executor that runs schedules. `options` must outlive it.
std::unique_ptr<Testbed> real_testbed(const Options& options, const ExecutorEntry& entry, int ranks,
                                      Team team);

/// An executor that cannot run here: every case is skipped for `reason`.
std::unique_ptr<Testbed> absent_testbed(std::string reason, Team team);

/// The machine of `options.topology`, as one process computes it. `options` must outlive it.
std::unique_ptr<Testbed> simulated_testbed(const Options& options, int ranks, Team team);

}  // namespace baton
