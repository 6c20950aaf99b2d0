// SPDX-License-Identifier: Apache-2.0
// A run that is made up: its cases and its outcomes, without any process.
#pragma once

#include <string>
#include <vector>

#include "harness/cases/collective_workload.hpp"
#include "harness/cases/sweep.hpp"
#include "harness/options/options.hpp"
#include "harness/run/outcomes.hpp"

namespace baton {

/// The options of two contests, all_scan and ring_scan at 2 and at 3 ranks.
inline Options made_options() {
  Options options;
  Axes axes{.executors = {"local"}, .ranks = {2, 3}, .blocks = {1}, .cadences = {Cadence::isolated}};
  axes.comparison_groups.emplace_back();
  for (const char* name : {"all_scan", "ring_scan"})
    axes.comparison_groups[0].push_back(
        collective_workload(find_collective(name), Shape{1, 4, 4, 2}, Direction::forward));
  options.cases = cases(axes);
  return options;
}

/// Begins a case and ends it with these seconds, or with the reason why it was skipped or failed.
struct MadeRun {
  const Options& options;
  Outcomes& outcomes;

  void times(int index, std::vector<double> seconds, double bound_seconds = 1) const {
    Record record = record_of(index);
    record.cost = Cost{64, 1};
    record.known_bound_seconds = bound_seconds;
    record.samples.seconds = std::move(seconds);
    record.summary = summarise(record.samples.seconds);
    end(index, record);
  }
  void skips(int index, const std::string& reason) const {
    Record record = record_of(index);
    record.skipped = reason;
    end(index, record);
  }
  void fails(int index, const std::string& reason) const {
    Record record = record_of(index);
    record.failure = Failure{.reason = reason, .rank = {}, .step = {}, .exit_code = 137};
    end(index, record);
  }

 private:
  Record record_of(int index) const {
    Record record;
    record.bench_case = options.cases[index];
    return record;
  }
  void end(int index, const Record& record) const {
    outcomes.begin(index);
    outcomes.end(index, record);
  }
};

}  // namespace baton
