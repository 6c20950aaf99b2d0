// SPDX-License-Identifier: Apache-2.0
// The one place where results of a run come together, whoever started its ranks: they are kept,
// compared, appended to the files of records and printed.
#pragma once

#include <string>

#include "harness/process/output.hpp"
#include "harness/record/comparisons.hpp"
#include "harness/record/csv.hpp"
#include "harness/run/channel.hpp"
#include "harness/run/display.hpp"
#include "harness/run/results.hpp"

namespace baton {

struct Failure;
struct Options;

/// Collects the results of a run in the process that prints them.
class Collector {
 public:
  /// Opens the files of records, and takes over the results that --resume names, of at most
  /// `most_launches` launches. `options` must outlive it. Throws UsageError if a file cannot be
  /// read or written.
  Collector(const Options& options, int most_launches);

  const Results& results() const { return results_; }
  const Comparisons& comparisons() const { return comparisons_; }
  Display& display() { return display_; }

  /// Starts a launch, or starts it again, and returns what is left to be done in it. `launches` is
  /// the number that its records have. Cases whose schedules are wrong fail before the first
  /// launch.
  Plan start_launch(int launch, int launches);
  /// Takes a message of the launch. Throws SystemError if a record cannot be written; the row then
  /// stands.
  void take(const Message& message);
  /// Notes that a case failed in the present launch.
  void fail(int index, const Failure& failure);

 private:
  void resume(int most_launches);
  void prove_cases();
  void end(int index, Result result);
  void compare(int launch, int index, const Result& result);
  void add_provenance(Result& result) const;

  const Options& options_;
  Results results_;
  Comparisons comparisons_;
  std::string run_;  // the name of the run, which all its records share
  int launches_ = 1;
  bool is_proved_ = false;
  Journal journal_;
  CsvFile csv_;
  Display display_;
};

}  // namespace baton
