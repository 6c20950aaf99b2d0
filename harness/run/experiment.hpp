// SPDX-License-Identifier: Apache-2.0
// One case from its schedules to its record: prove, prepare, verify, time, write down.
#pragma once

#include <benchmark/benchmark.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/cases/case.hpp"
#include "harness/model/prediction_errors.hpp"
#include "harness/options/options.hpp"
#include "harness/process/launch.hpp"
#include "harness/process/progress.hpp"
#include "harness/process/watchdog.hpp"
#include "harness/report/columns.hpp"
#include "harness/report/record.hpp"
#include "harness/run/testbed.hpp"

namespace baton {

/// Runs cases, each as the body of a Google Benchmark, with one iteration a round.
class Experiment {
 public:
  /// Throws UsageError if the journal cannot be written. Collective over `world`.
  Experiment(const Options& options, const World& world, const Table& table);

  /// Runs `question` and keeps its record. Collective over the world. Throws what Executor and check throw.
  void run(benchmark::State& state, const Case& question);

  /// What is to be printed since the last call, in order; empty but on rank 0.
  std::string take_output();

  /// The lines above the table: machine, versions, how rounds are timed.
  std::string header() const;

  /// The lines below the table.
  std::string footer() const { return prediction_errors_.table(); }

  const Table& table() const { return table_; }
  const Progress& progress() const { return progress_; }

  /// Throws WrongResult if any row had wrong elements.
  void throw_if_wrong() const;

 private:
  Testbed& testbed(const std::string& executor, int ranks);
  void answer(Record& record, Testbed& testbed, benchmark::State& state);
  void compare_with_others(Record& record);
  void compare_with_baseline(Record& record);
  void find_hidden_share(Record& record) const;
  void keep(const Record& record, double start_skew_seconds);

  const Options& options_;
  const World& world_;
  const Table& table_;
  Journal journal_;
  Watchdog watchdog_;
  Progress progress_;
  Provenance provenance_;
  std::map<std::pair<std::string, int>, std::unique_ptr<Testbed>> testbeds_;
  std::multimap<std::string, Record> timed_;  // by contest
  PredictionErrors prediction_errors_;
  std::string output_;
  std::string wrong_;
};

}  // namespace baton
