// SPDX-License-Identifier: Apache-2.0
// From a case to its record: a runner prepares, verifies and times it, and each step returns a
// value that the next one reads.
//
//   Case -> Prepared -> Verified -> Timed -> Record
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/executors/timing.hpp"
#include "harness/cases/case.hpp"
#include "harness/measure/machine.hpp"
#include "harness/measure/samples.hpp"
#include "harness/options/options.hpp"
#include "harness/process/output.hpp"
#include "harness/process/system.hpp"
#include "harness/process/world.hpp"
#include "harness/record/record.hpp"
#include "harness/run/display.hpp"
#include "harness/run/ledger.hpp"
#include "harness/run/record_files.hpp"

namespace baton {

struct Comparison;

/// A case with everything that is known before it runs.
struct Prepared {
  /// The case as it runs: on several nodes or hosts `ranks_a_node` is that of the machine or of the
  /// placement unless the user set it.
  Case bench_case;
  /// The reason why it cannot run, if there is one. Then nothing below `device_facts` is complete.
  Refusal refusal;
  int warmup = 0;
  int rounds = 0;
  AlphaBeta alpha_beta;
  std::vector<std::pair<std::string, std::string>> device_facts;
  /// The number of blocks that runs.
  int blocks = 1;
  /// One a rank; empty if the rounds are simulated, since those of thousands of ranks do not fit in
  /// memory at once.
  std::vector<Schedule> schedules;
  std::string implementation = "schedule";
  /// Empty if a native does not tell, or if simulated rounds count it.
  std::optional<Cost> cost;
  /// Of affine maps.
  std::optional<MatrixCost> matrices;
  std::optional<Footprint> footprint;
  Dtype wire = Dtype::f32;
  /// The simulated machine, if there is one, and what it was calibrated with.
  std::string topology, stands_on;
  std::optional<Prediction> prediction;
};

/// The results of the rounds of a case.
struct Timed {
  Samples samples;
  /// Seconds that the slowest process spent in the warm-up and the timed rounds.
  double seconds = 0;
  /// The link as it was measured once more, where the times did not suit it.
  std::optional<AlphaBeta> alpha_beta;
  /// The comparison of what the rounds left.
  Verified verified;
  /// Of measured rounds.
  std::optional<Conditions> conditions;
  /// Counted by simulated rounds.
  std::optional<Cost> cost;
  std::optional<Footprint> footprint;
  std::optional<std::int64_t> messages;
  /// Of simulated rounds, by the links that their messages take.
  std::optional<double> bound_seconds;
  /// Why simulated times go beyond the calibration of their topology; empty if they do not.
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
  /// Of ranks on several hosts.
  virtual std::optional<HostsOfRanks> hosts() const { return std::nullopt; }

  /// Builds and proves the schedules and finds out whether they can run. Throws ScheduleError.
  virtual Prepared prepare(const Case& bench_case) = 0;
  /// Compares with the oracle and leaves the case ready to be timed.
  virtual Verified verify(const Prepared& prepared) = 0;
  /// Runs the rounds, and compares once more what they left.
  virtual Timed time(const Prepared& prepared) = 0;
  /// Runs one more round.
  virtual TracedRound trace(const Prepared& prepared) = 0;

 protected:
  /// `so_far` with the comparisons of all processes added, and with the `seconds` that this process
  /// verified for.
  Verified with(Verified so_far, const Comparison& here, double seconds = 0) const;

 private:
  Team team_;
};

/// What was measured of the links of ranks.
struct RankLinks {
  AlphaBeta model;
  StartSkew start_skew;
  std::optional<HostsOfRanks> hosts;
};

/// The lines above the table that describe the links of the executor called `name`; `device` is
/// null for processors.
std::string link_lines(const std::string& name, int ranks, const Device* device, const RankLinks& links);

/// Runs schedules on an executor. `options` must outlive it; `topology` is that of predictions, if
/// there is one.
std::unique_ptr<CaseRunner> measured_runner(const Options& options, const std::optional<Topology>& topology,
                                            const std::string& executor, int ranks, Team team);

/// Computes times on `topology` in one process. `options` and `topology` must outlive it.
std::unique_ptr<CaseRunner> simulated_runner(const Options& options, const Topology& topology, int ranks,
                                             Team team);

/// Skips every case because this machine lacks something. `options` must outlive it.
std::unique_ptr<CaseRunner> unavailable_runner(const Options& options, Refusal refusal, Team team);

/// Runs one more round of the case of `record`, which `runner` has prepared and timed, and writes
/// its trace to `path`. Returns the line that says so, or why there is no trace. Does nothing if
/// `path` is empty. Collective over the runner's team. Throws SystemError if the file cannot be
/// written.
std::string trace_round(const std::string& path, const Record& record, const Prepared& prepared,
                        CaseRunner& runner);

/// Writes the schedule of each rank of a case in `blocks` blocks, rank by rank, to PATH.RANK and
/// the suffix of the format. Returns the line that says so; an empty one if nothing is asked for.
/// Throws SystemError if a file cannot be written, and what the format throws.
std::string export_case(const Export& asked, const Case& bench_case, int blocks);

// Google Benchmark: selects cases by name, lists them and writes its own files. Cases are timed
// outside of it; it gets their times afterwards, one for each iteration.

/// A case under the name by which --benchmark_filter selects it.
struct BenchmarkCase {
  /// Seconds of each round; empty if `skipped` says why there are none.
  struct Result {
    std::vector<double> seconds;
    std::string skipped;
  };

  std::string name;
  std::function<Result()> run;
};

/// Starts this program anew without Google Benchmark's environment variables, if there are any.
/// They would set flags, those that are refused here too.
void forget_benchmark_environment(char** argv);

/// Hands `arguments` to Google Benchmark, which keeps pointers to them; only one process may write
/// its files. Throws UsageError for a flag that Google Benchmark does not know.
void initialise_benchmark(std::vector<std::string>& arguments, bool writes_files);

/// Runs the selected cases in order, each of `rounds` rounds, or prints their names if
/// --benchmark_list_tests asks for that. Only one process may print. Throws UsageError if no case
/// is selected.
void run_benchmarks(const std::vector<BenchmarkCase>& cases, int rounds, bool prints);

/// Runs the cases of one bench in one launch and writes their records.
class Experiment {
 public:
  /// Rank 0's `ledger` says which cases are settled, and how they ended in earlier launches;
  /// `standings` gets the times of both. `display` prints them; null if another process does. All
  /// must outlive the experiment.
  /// `interrupted` is what the watchdog says of the results when the launch is ended from outside.
  /// Throws UsageError if the journal cannot be written. Collective over `world`.
  Experiment(const Options& options, const std::optional<Topology>& topology, const World& world,
             Ledger& ledger, Launches& standings, Display* display, const std::string& interrupted);

  /// Runs case `index` of the options and appends its record; or returns what it gave before if it
  /// is settled. The result has one time for each round, 0 in processes without a rank in the case.
  /// Collective over the world. Throws what Executor throws.
  BenchmarkCase::Result run(int index);

 private:
  void prove_cases();
  BenchmarkCase::Result run_unsettled(int index);
  BenchmarkCase::Result refuse(int index, const std::string& error);
  CaseRunner& runner(const Case& bench_case);
  std::unique_ptr<CaseRunner> make_runner(const Backend& backend, int ranks);
  BenchmarkCase::Result answer(CaseRunner& runner, int index);
  Record keep(int index, Record record);
  void announce(const std::string& about, const std::string& text);

  const Options& options_;
  const std::optional<Topology>& topology_;
  const World& world_;
  Ledger& ledger_;
  Launches& standings_;
  Display* display_;
  std::string settled_;              // '1' for each case that is not to run in this launch
  std::vector<std::string> proofs_;  // why a case's schedules are wrong, empty where they are right
  RecordFiles files_;
  Watchdog watchdog_;
  std::map<std::pair<std::string, int>, std::unique_ptr<CaseRunner>> runners_;
};

/// The process that the user started: runs the cases of `options` in launches of this program with
/// the arguments of `argv`, prints what they measure and outlives them. A case that ends its launch
/// becomes a failed row, and the launch is started again for the others. Names what gave no time at
/// the end. Returns the exit code. Throws UsageError or SystemError if no launch can start.
int direct(const Options& options, char** argv);

/// The main function of a bench: parses the command line, starts the launches and collects what
/// they leave, or, as a process of a launch, runs its cases. Returns the exit code.
int bench_main(int argc, char** argv, const ParseOptions& parse);

}  // namespace baton
