// SPDX-License-Identifier: Apache-2.0
// The flags that all benches share.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/options/options.hpp"

namespace baton {

/// The shared flags as the user wrote them, before they are looked up.
struct CommonWords {
  std::vector<std::string> executors{"mpi"};
  std::vector<int> ranks{4};
  std::vector<std::string> blocks{"auto"};
  std::vector<std::string> cadences{"isolated"};
  int cycles = 1;
  int ranks_a_node = 0;
  std::string topology;
  bool list = false;
};

/// A command line under way.
struct CommandLine {
  CommandLine(const std::string& program, const std::string& description);

  /// Adds the shared flags; a bench adds its own to `app` as well.
  CLI::App app;
  CommonWords words;
  Options options;

  /// Parses everything. False where the answer was --help, or --list and `print_list` gave it. Throws UsageError.
  bool parse(int argc, char** argv, const std::function<void()>& print_list);

  /// The axes of the shared flags, looked up; `names` are what competes. Throws UsageError.
  Axes axes(const std::vector<std::string>& names) const;
};

/// Sizes of tensors: from 1 to 2^24.
CLI::Validator size_range();

/// Throws UsageError if a tensor [a, b, c] of f32 is more than one rank could have.
void check_size(std::int64_t a, std::int64_t b, std::int64_t c);

/// Prints the executors that are built in.
void print_executors();

}  // namespace baton
