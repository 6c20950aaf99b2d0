// SPDX-License-Identifier: Apache-2.0
// Google Benchmark selects cases by name, lists them and writes its own files. Cases are timed
// outside of it; it gets their times afterwards, one for each iteration.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace baton {

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
/// They would set flags, even those that the bench refuses.
void forget_benchmark_environment(char** argv);

/// Hands `arguments` to Google Benchmark, which keeps pointers to them; only one process may write
/// its files. Throws UsageError for a flag that Google Benchmark does not know.
void initialise_benchmark(std::vector<std::string>& arguments, bool writes_files);

/// Runs the selected cases in order, each of `rounds` rounds, or prints their names if
/// --benchmark_list_tests asks for that. Only one process may print. Throws UsageError if no case
/// is selected.
void run_benchmarks(const std::vector<BenchmarkCase>& cases, int rounds, bool prints);

}  // namespace baton
