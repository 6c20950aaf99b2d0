// SPDX-License-Identifier: Apache-2.0
// The cases of one bench in one launch, from each case to its record.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/process/watchdog.hpp"
#include "harness/run/google_benchmark.hpp"
#include "harness/run/record_files.hpp"

namespace baton {

class CaseRunner;
class Display;
class Standings;
class Outcomes;
struct Backend;
struct Case;
struct Topology;

/// Runs the cases of one bench in one launch and writes their records.
class Experiment {
 public:
  /// Prepares the cases of `options`. Rank 0's `outcomes` has those that are settled, and how they
  /// ended in earlier launches; `standings` gets their times. `display` prints them, and is null if
  /// another process does. All must outlive the experiment. `interrupted` is what the watchdog says
  /// of the results when the launch is ended from outside. Throws UsageError if the journal cannot
  /// be written. Collective over `world`.
  Experiment(const Options& options, const std::optional<Topology>& topology, const World& world,
             Outcomes& outcomes, Standings& standings, Display* display, const std::string& interrupted);
  ~Experiment();

  /// Runs case `index` of the options and appends its record. Returns what the case gave before if
  /// it is settled. The result has one time for each round, 0 in processes without a rank in the
  /// case. Collective over the world. Throws what Executor throws.
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
  Outcomes& outcomes_;
  Standings& standings_;
  Display* display_;
  std::string settled_;              // '1' for each case that is not to run in this launch
  std::vector<std::string> proofs_;  // why a case's schedules are wrong, empty where they are right
  RecordFiles files_;
  Watchdog watchdog_;
  std::map<std::pair<std::string, int>, std::unique_ptr<CaseRunner>> runners_;
};

}  // namespace baton
