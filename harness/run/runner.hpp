// SPDX-License-Identifier: Apache-2.0
// What runs the cases of one backend. Each call returns a value that the next one reads:
//
//   Case -> Prepared -> Verified -> Timed -> Record
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/executors/team.hpp"
#include "collectives/executors/timing.hpp"
#include "harness/cases/case.hpp"
#include "harness/cases/matrices.hpp"
#include "harness/measure/alpha_beta.hpp"
#include "harness/measure/hosts.hpp"
#include "harness/measure/prediction.hpp"
#include "harness/measure/samples.hpp"
#include "harness/process/conditions.hpp"
#include "harness/record/record.hpp"

namespace baton {

struct Comparison;
struct Options;

/// A case with everything that is known before it runs.
struct Prepared {
  /// The case as it runs. On several nodes or hosts `ranks_per_node` is that of the machine or of
  /// the placement unless the user set it.
  Case bench_case;
  /// The reason why the case cannot run; empty if it can. With a reason nothing below
  /// `device_facts` is complete.
  Refusal refusal;
  int warmup = 0;
  int rounds = 0;
  AlphaBeta alpha_beta;
  std::vector<std::pair<std::string, std::string>> device_facts;
  /// The number of blocks that the case runs with.
  int blocks = 1;
  /// The schedules, one a rank; empty if the rounds are simulated, since those of thousands of
  /// ranks do not fit in memory at once.
  std::vector<Schedule> schedules;
  std::string implementation = "schedule";
  /// Cost of the schedules; empty if a native does not tell, or if simulated rounds count it.
  std::optional<Cost> cost;
  /// Cost of the matrices of affine maps, if there are any.
  std::optional<MatrixCost> matrices;
  std::optional<Footprint> footprint;
  Dtype wire = Dtype::f32;
  /// The name of the simulated machine, and what it was calibrated with; empty for measured rounds.
  std::string topology, stands_on;
  std::optional<Prediction> prediction;
};

/// The results of the rounds of a case.
struct Timed {
  Samples samples;
  /// Seconds that the slowest process spent in the warm-up and the timed rounds.
  double seconds = 0;
  /// The links as they were measured last, in place of those in `Prepared`; empty for simulated
  /// rounds.
  std::optional<AlphaBeta> alpha_beta;
  /// The comparison of the rounds' outputs with the oracle.
  Verified verified;
  /// Load of the host during the measurement; empty for simulated rounds.
  std::optional<Conditions> conditions;
  /// Cost that simulated rounds count; empty for measured rounds.
  std::optional<Cost> cost;
  std::optional<Footprint> footprint;
  std::optional<std::int64_t> messages;
  /// Bound in seconds by the links that messages take: of simulated rounds, or over several hosts.
  std::optional<double> bound_seconds;
  /// The reason why simulated times go beyond the calibration of their topology; empty if they do
  /// not.
  std::string extrapolated;
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
  virtual std::string description() const = 0;
  /// How far apart the ranks start a round, in seconds.
  virtual double start_skew_seconds() const { return 0; }
  /// What carries messages between ranks of one host; empty if there are none, or it is not known.
  virtual std::string transport() const { return {}; }
  /// Facts about the hosts of the ranks; empty on a single host.
  virtual std::optional<HostsOfRanks> hosts() const { return std::nullopt; }

  /// Builds and checks the schedules and finds out whether they can run. Throws ScheduleError.
  virtual Prepared prepare(const Case& bench_case) = 0;
  /// Compares rounds with the oracle and leaves the case ready to be timed.
  virtual Verified verify(const Prepared& prepared) = 0;
  /// Runs the rounds, and compares their outputs with the oracle.
  virtual Timed time(const Prepared& prepared) = 0;
  /// Runs one more round with the times of its steps.
  virtual TracedRound trace(const Prepared& prepared) = 0;

 protected:
  /// `so_far` with the comparisons of all processes added, and with the `seconds` that this process
  /// verified for.
  Verified with(Verified so_far, const Comparison& here, double seconds = 0) const;

 private:
  Team team_;
};

/// Skips every case because this machine lacks something. `options` must outlive it.
std::unique_ptr<CaseRunner> unavailable_runner(const Options& options, Refusal refusal, Team team);

/// Runs one more round of the case of `record`, which `runner` has prepared and timed, and writes
/// its trace to `path`. Returns the line that says so, or why there is no trace. Does nothing if
/// `path` is empty. Collective over the runner's team. Throws SystemError if the file cannot be
/// written.
std::string trace_round(const std::string& path, const Record& record, const Prepared& prepared,
                        CaseRunner& runner);

}  // namespace baton
