// SPDX-License-Identifier: Apache-2.0
// Google Benchmark's reporters: the table on rank 0, silence on the others.
#pragma once

#include <benchmark/benchmark.h>

#include <vector>

#include "harness/run/experiment.hpp"

namespace baton {

/// Prints the rows of an experiment as they come.
class TableReporter : public benchmark::BenchmarkReporter {
 public:
  explicit TableReporter(Experiment& experiment) : experiment_(experiment) {}

  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override;

 private:
  Experiment& experiment_;
};

/// Prints nothing, not even the list of tests.
class SilentReporter : public benchmark::BenchmarkReporter {
 public:
  SilentReporter();

  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;

 private:
  std::ostream nowhere_{nullptr};
};

}  // namespace baton
