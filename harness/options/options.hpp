// SPDX-License-Identifier: Apache-2.0
// The options of a run: settings that all benches share, and the cases.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/cases/case.hpp"
#include "harness/record/export.hpp"

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
  /// How often all cases run, each time by new processes.
  int launches = 1;
  /// Seconds that all launches may take: more than `launches` run while they fit; 0 for no more.
  int most_seconds = 0;
  /// The half width of intervals, in percent, at which no launch is added any more; 0 to add none.
  double stop_at = 0;
  /// A name that the records of several runs share; empty for none.
  std::string session;
  /// The file of records of an earlier run, whose cases are not measured again; empty for none.
  std::string resume;
  /// The folder of the plan and the messages, in a rank that a bench started; empty elsewhere.
  std::string worker;
  /// The file of records; empty for none.
  std::string journal;
  /// The file of comma-separated values; empty for none.
  std::string csv;
  /// True to show all columns.
  bool wide = false;
  /// The characters of the longest name that rows of this bench can have.
  int longest_name = 0;
  /// The file for the trace of one more round; empty for none.
  std::string trace;
  /// The format and the files of the schedules of the only case.
  Export exported;
  /// The file with the machine of the simulator, which also predicts measured rows; empty for none.
  std::string topology;
  /// The file for the measured topology of this machine, or for its kernels with the links of
  /// `topology`; empty for none.
  std::string calibrate;
  bool dry_run = false;
  bool print_schedules = false;
  /// Seconds that one case may take; 0 for no limit.
  int time_limit_seconds = 300;
  /// Google Benchmark's arguments.
  std::vector<std::string> benchmark_arguments;

  /// The number of processes that the cases need: the most ranks of a backend with a process a
  /// rank, 0 if there is none.
  int processes() const;

  /// The most busy threads that a process has in any case.
  int threads() const;

  /// True if `calibrate` gets the links of `topology`, beside the kernels that one rank measures.
  bool calibrates_kernels_alone() const { return !calibrate.empty() && !topology.empty(); }

  /// The number of ranks that is written to `calibrate`: the largest of the measured backend.
  /// Throws UsageError unless there is exactly one such backend, with at least two ranks, or with
  /// one rank and layers if kernels alone are measured.
  int calibrated_ranks() const;
};

}  // namespace baton
