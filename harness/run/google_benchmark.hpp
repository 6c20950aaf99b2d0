// SPDX-License-Identifier: Apache-2.0
// Google Benchmark's flags: it selects cases by name, lists them, and writes its own file of
// results. Cases are timed outside of it, and it gets their times when all have been measured.
#pragma once

namespace baton {

class Results;
struct Options;

/// Leaves those cases of `options` that --benchmark_filter selects. False if --benchmark_list_tests
/// asked for their names, which rank 0 has printed. Throws UsageError for a flag that Google
/// Benchmark does not know, and if no case is left.
bool select_cases(Options& options);

/// Writes the file of --benchmark_out, if there is one: the last times of each case.
void write_benchmark_file(const Options& options, const Results& results);

}  // namespace baton
