// SPDX-License-Identifier: Apache-2.0
// What runs the cases of one backend.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/executors/team.hpp"
#include "collectives/executors/timing.hpp"
#include "harness/cases/case.hpp"
#include "harness/cases/verify.hpp"
#include "harness/record/facts.hpp"
#include "harness/record/result.hpp"

namespace baton {

struct Options;

/// A case that runs, with what is known of it so far.
struct Prepared {
  /// The case as it runs. On several nodes or hosts `ranks_per_node` is that of the machine or of
  /// the placement unless the user set it.
  Case bench_case;
  /// The reason why the case cannot run; empty if it can.
  Refusal refusal;
  /// The number of blocks that the case runs with.
  int blocks = 1;
  /// The schedules, one a rank; empty if the rounds are simulated, since those of thousands of
  /// ranks do not fit in memory at once.
  std::vector<Schedule> schedules;
  /// True if a native runs in the schedule's place.
  bool is_native = false;
  CaseTraffic traffic;
  /// What all comparisons with the oracle found, and the seconds that they took.
  Comparison found;
  double verification_seconds = 0;
  /// The smaller case that was verified in place of a simulated one.
  std::optional<Case> verified_case;
  Result result;
};

/// One more round with the times of its steps; `times` is empty if the executor cannot tell.
struct TracedRound {
  std::vector<Schedule> schedules;
  std::vector<StepTime> times;
};

/// Runs the cases of one backend and number of ranks. All calls are collective over the team; only
/// its members may call anything but `team`.
class CaseRunner {
 public:
  explicit CaseRunner(Team team) : team_(std::move(team)) {}
  virtual ~CaseRunner() = default;
  CaseRunner(const CaseRunner&) = delete;
  CaseRunner& operator=(const CaseRunner&) = delete;

  const Team& team() const { return team_; }

  /// The lines above the table that describe the machine; may be empty.
  virtual std::string description() const { return {}; }

  /// Builds and checks the schedules and finds out whether they can run. Throws ScheduleError.
  virtual Prepared prepare(const Case& bench_case) = 0;
  /// Verifies and times what can run, and completes its result.
  void measure(Prepared& prepared);
  /// Runs one more round with the times of its steps.
  virtual TracedRound trace(const Prepared&) { return {}; }

 protected:
  /// Compares rounds with the oracle and leaves the case ready to be timed.
  virtual void verify(Prepared& prepared) = 0;
  /// Runs the rounds, compares their outputs with the oracle, and adds their times if they are
  /// right.
  virtual void time(Prepared& prepared) = 0;
  /// Adds what all processes found, and the seconds that the slowest of them took for it.
  void add(Prepared& prepared, const Comparison& here, double seconds) const;

 private:
  Team team_;
};

/// Skips every case because this machine lacks something. `options` must outlive it.
std::unique_ptr<CaseRunner> unavailable_runner(const Options& options, Refusal refusal, Team team);

/// Runs one more round of a case, which `runner` has prepared and measured, and writes its trace to
/// `path`. Returns the line that says so, or why there is no trace. Does nothing if
/// `path` is empty. Collective over the runner's team. Throws SystemError if the file cannot be
/// written.
std::string trace_round(const std::string& path, const Prepared& prepared, CaseRunner& runner);

}  // namespace baton
