// SPDX-License-Identifier: Apache-2.0
// What the user asked for: settings that all benches share, and the cases.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/simulator/topology/topology.hpp"
#include "harness/cases/case.hpp"

namespace baton {

struct Options {
  std::vector<Case> cases;
  /// The name that all ratios are taken to; may be empty.
  std::string baseline;
  int warmup = 5;
  int rounds = 50;
  /// Verifications before the timing, each with inputs of its own.
  int checks = 1;
  std::uint64_t seed = 1;
  /// Where records go; empty for nowhere.
  std::string journal;
  /// Where the trace of one more round goes; empty for nowhere.
  std::string trace;
  /// The machine of executor `simulator`, and the model that predicts rows which really run.
  std::optional<Topology> topology;
  /// Where the measured topology of this machine goes; empty where none is to be measured.
  std::string calibrate;
  bool dry_run = false;
  bool print_schedules = false;
  /// Seconds that one case may take; 0 for no limit.
  int time_limit_seconds = 300;
  /// Threads of a rank that are busy at a time: one that communicates, and one that computes where there are kernels.
  int threads = 1;
  /// The arguments that are Google Benchmark's, the program's name first.
  std::vector<std::string> benchmark_arguments;

  /// Processes that the cases need: the most ranks of an executor with a process a rank, else one.
  int processes() const;

  /// The ranks whose measurements `calibrate` gets: the most of the executor that runs. Throws UsageError where there is
  /// not exactly one such executor, or nobody to talk to.
  int calibrated_ranks() const;
};

/// Read a bench's command line. They print and return nothing where the answer was --help or --list, and throw
/// UsageError with one line where the arguments are off.
std::optional<Options> parse_collective_options(int argc, char** argv);
std::optional<Options> parse_operator_options(int argc, char** argv);

}  // namespace baton
