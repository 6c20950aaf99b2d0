// SPDX-License-Identifier: Apache-2.0
// The flags that all benches share, from their declaration to the cases of a run.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/cases/sweep.hpp"
#include "harness/options/flags.hpp"
#include "harness/options/grid.hpp"
#include "harness/options/options.hpp"

namespace baton {

/// A bench's command line: the shared flags as the user wrote them, and those that the bench adds.
class CommonOptions {
 public:
  /// `examples` are commands that --help ends with, one a line.
  CommonOptions(const std::string& program, const std::string& description, const std::string& examples);

  /// The flags, to which a bench adds its own.
  Flags& flags() { return flags_; }
  /// The settings that need no look-up.
  Options& options() { return options_; }

  /// Parses a command line; a bench's own flags come first in --help. False if the answer was
  /// --help, --version, --list or --schema, which has been printed: `print_list` prints what is
  /// registered, but for the backends. Throws UsageError.
  bool parse(int argc, char** argv, const std::function<void()>& print_list);

  /// The names of the executors, which are all built in. Throws UsageError.
  std::vector<std::string> executors() const;

  /// The options with all cases that the shared flags make of `groups` of workloads. Throws
  /// UsageError.
  Options with_cases(std::vector<std::vector<std::shared_ptr<const Workload>>> groups) const;

 private:
  void declare_axes();
  void declare_rounds();
  void declare_simulator();
  void declare_output();
  void ask_like();
  void settle();
  void print_settings() const;

  std::string program_;
  Flags flags_;
  std::string like_;
  Options options_;
  std::vector<std::string> executors_;
  AxisFlags<Case> axes_{flags_};
  int cycles_ = 1;
  std::vector<std::string> blocks_{"auto"};
  std::vector<std::string> exported_;  // the format and the file of --export; empty without it
  bool list_ = false;
  bool schema_ = false;
  bool print_flags_ = false;
};

/// True if the tensors of all executors are bf16 by default, which is so on GPUs.
bool are_on_gpus(const std::vector<std::string>& executors);

/// The length of the longest of `names`.
int longest_of(const std::vector<std::string>& names);

}  // namespace baton
