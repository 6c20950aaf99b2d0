// SPDX-License-Identifier: Apache-2.0
// A launch: the processes of a run as children of this one, which outlives their crashes.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/process/report.hpp"

namespace baton {

/// The command that starts `processes` ranks of this program under mpiexec, or the program alone
/// for 0, with the arguments `argv[1]` and on. It allows root and more processes than cores, and
/// binds each process to `threads` cores if there are enough. Where there is one, it is the
/// `program_command`.
std::vector<std::string> launch_command(int processes, int threads, char** argv);

/// How a launch ended.
struct LaunchEnd {
  /// The launcher's exit code, or 128 and the number of the signal that ended it.
  int exit_code = 0;
  /// True if the user interrupted this process during the launch, or if its own launcher ended it.
  bool interrupted = false;
  /// What was reported of its failure: which ranks were stopped if Followed ended it, what ranks
  /// reported into the file that was followed, and behind that the rank that died as the launcher
  /// says, or that ended before the others.
  std::vector<Report> reports;
  /// Why the caller ended it, if it did, for its own words.
  std::string silence;
  /// What the launcher itself said in one line, such as why it could not start ranks; may be empty.
  std::string launcher_words;
  /// The signal that the launcher says a process died of, such as "signal 9 (Killed)"; may be
  /// empty.
  std::string signal;
  double seconds = 0;

  /// True if the ranks refused what the user asked for; the cause says why.
  bool refused() const;
  /// The report that says why the launch ended; null if none does.
  const Report* first_report() const;
  /// Why the launch ended, by its reports or else by the launcher's words; may be empty. A report
  /// does not name the part that is `known`.
  std::string cause(std::string_view known = {}) const;
};

/// A file that a launch writes, and a function that is called whenever it has grown, at least every
/// ten seconds, and when the reader of the standard output leaves. Its argument is true if
/// all ranks ended seconds ago. If it returns false, the launch is ended: by SIGTERM, and by
/// SIGKILL if it still runs after ten seconds. An empty function does nothing.
struct Followed {
  std::string file;
  std::function<bool(bool ranks_are_gone)> go_on;
  /// The number of ranks, 0 if the launch has no launcher of MPI.
  int ranks = 0;
};

/// Runs `command`, follows it and waits for its end. Its standard error passes through, but for
/// what the launcher says about a failure. No process of it is left afterwards.
/// Throws SystemError if it cannot be started.
LaunchEnd run_launch(const std::vector<std::string>& command, const Followed& followed = {});

}  // namespace baton
