// SPDX-License-Identifier: Apache-2.0
// A run that is made up: its cases and its results, without any process.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "harness/cases/sweep.hpp"
#include "harness/options/options.hpp"
#include "harness/record/comparisons.hpp"
#include "harness/run/results.hpp"
#include "tests/harness/record/made_case.hpp"

namespace baton {

/// The options of two contests, all_scan and ring_scan at 2 and at 3 ranks.
inline Options made_options() {
  Options options;
  Axes axes{.executors = {"local"}, .points = {{.ranks = 2}, {.ranks = 3}}, .blocks = {1}};
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
  Results& results;
  Comparisons& comparisons;

  void times(int index, std::vector<double> seconds, double bound_seconds = 1) const {
    MadeCase made = made_case(std::move(seconds));
    made.bench_case = options.cases[index];
    made.traffic = {.cost = Cost{64, 1}, .known_bound_seconds = bound_seconds};
    comparisons.add(results.launch(), index, made.samples.seconds, bound_seconds);
    end(index, made.result());
  }
  void skips(int index, const std::string& reason) const {
    Result result = result_of(index);
    result.set("skipped", reason);
    end(index, result);
  }
  void fails(int index, const std::string& reason) const {
    Result result = result_of(index);
    add_failure(result, {.reason = reason, .exit_code = 137});
    end(index, result);
  }

 private:
  Result result_of(int index) const {
    Result result;
    add_case(result, options.cases[index], 5, 50);
    return result;
  }
  void end(int index, const Result& result) const {
    results.begin(index);
    results.end(index, result);
  }
};

/// What most tests of a run need.
class MadeRunTest : public testing::Test {
 protected:
  Options options_ = made_options();
  Results results_;
  Comparisons comparisons_{options_.cases, ""};
  MadeRun run_{options_, results_, comparisons_};
};

}  // namespace baton
