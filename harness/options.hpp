// SPDX-License-Identifier: Apache-2.0
// What the user asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/case.hpp"

namespace baton {

struct Options {
  Axes axes;
  int warmup = 5;
  int rounds = 50;
  /// Verifications before the timing, each with inputs of its own.
  int checks = 1;
  std::uint64_t seed = 1;
  /// Where records go; empty for nowhere.
  std::string journal;
  bool dry_run = false;
  bool print_schedules = false;
  /// Seconds that one case may take; 0 for no limit.
  int time_limit_seconds = 300;
  /// The arguments that are Google Benchmark's, the program's name first.
  std::vector<std::string> benchmark_arguments;

  /// Processes that the cases need: the most ranks of an executor with a process a rank, else one.
  int processes() const;
};

/// Reads the command line. Prints and returns nothing where the answer was --help or --list. Throws
/// UsageError with one line where the arguments are off.
std::optional<Options> parse_options(int argc, char** argv);

/// The one of `known` that differs from `word` by the fewest edits, or an empty string where none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

}  // namespace baton
