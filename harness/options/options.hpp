// SPDX-License-Identifier: Apache-2.0
// The options of a run: settings that all benches share, and the cases.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collectives/simulator/topology/topology.hpp"
#include "harness/cases/case.hpp"

namespace baton {

struct Options {
  std::vector<Case> cases;
  /// The name of the workload that all ratios refer to; may be empty.
  std::string baseline;
  int warmup = 5;
  int rounds = 50;
  /// Verifications before the timing, each with inputs of its own.
  int checks = 1;
  std::uint64_t seed = 1;
  /// The file of records; empty for none.
  std::string journal;
  /// The file for the trace of one more round; empty for none.
  std::string trace;
  /// The file with the machine of the simulator, which also predicts measured rows; empty for none.
  std::string topology;
  /// The file that gets the measured topology of this machine; empty for none.
  std::string calibrate;
  bool dry_run = false;
  bool print_schedules = false;
  /// Seconds that one case may take; 0 for no limit.
  int time_limit_seconds = 300;
  /// Busy threads of a rank: one that communicates, and one that computes if there are kernels.
  int threads = 1;
  /// Google Benchmark's arguments, after the program's name.
  std::vector<std::string> benchmark_arguments;

  /// Processes that the cases need: the most ranks of a backend with a process a rank, 0 if there
  /// is none.
  int processes() const;

  /// The number of ranks that is written to `calibrate`: the largest of the measured backend.
  /// Throws UsageError unless there is exactly one such backend with at least two ranks.
  int calibrated_ranks() const;
};

using ParseOptions = std::function<std::optional<Options>(int, char**)>;

/// Parse a bench's command line. They print and return nothing if the answer was --help or --list.
/// Throw UsageError with one line if an argument is wrong.
std::optional<Options> parse_collective_options(int argc, char** argv);
std::optional<Options> parse_operator_options(int argc, char** argv);

/// The topology of --topology, if it was given. Throws UsageError if it cannot be read, or if the
/// simulator has none or one that is too small for its ranks.
std::optional<Topology> read_machine(const Options& options);

/// Throws UsageError if this machine can run none of the cases. If it can run some, the others become
/// skipped rows.
void refuse_if_nothing_runs(const Options& options);

/// Throws UsageError if a trace or a calibration cannot be written, or if a trace is asked for and
/// there is not exactly one case.
void require_outputs(const Options& options);

}  // namespace baton
