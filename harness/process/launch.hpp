// SPDX-License-Identifier: Apache-2.0
// A launch: the processes of a run as children of this one, which outlives their crashes.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace baton {

/// The command that starts `processes` ranks of this program under mpiexec, or the program alone
/// for 0, with the arguments `argv[1]` and on. It allows root and more processes than cores, and
/// binds each process to `threads` cores if there are enough.
std::vector<std::string> launch_command(int processes, int threads, char** argv);

/// A folder for the files of a run's launches, removed with all that they leave in it.
class LaunchFolder {
 public:
  /// Throws SystemError if it cannot be made.
  LaunchFolder();
  ~LaunchFolder();
  LaunchFolder(const LaunchFolder&) = delete;
  LaunchFolder& operator=(const LaunchFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::string shared_memory_;  // empty if this host has none
};

/// How a launch ended.
struct LaunchEnd {
  /// The launcher's exit code, or 128 and the number of the signal that ended it.
  int exit_code = 0;
  /// True if the user interrupted this process meanwhile, or its own launcher ended it.
  bool interrupted = false;
  /// What the processes reported, one message a line, without "baton: ", and which of them were
  /// stopped when the launch was ended by Followed.
  std::vector<std::string> reports;
  /// The signal that the launcher says a process died of, such as "signal 9 (Killed)"; may be
  /// empty.
  std::string signal;
  /// What the launcher says of that process, such as "rank 1 died of signal 9 (Killed)".
  std::string death;
  double seconds = 0;
};

/// A file that a launch writes, and what is to be done whenever it has grown, or at least every ten
/// seconds; false ends the launch: SIGTERM, and SIGKILL if it still runs after ten seconds. It is
/// asked too when the reader of the standard output leaves.
/// An empty function stands for nothing to do.
struct Followed {
  std::string file;
  std::function<bool()> go_on;
};

/// Runs `command`, follows it and waits for its end. Its standard error passes through, but for
/// reports and for what the launcher says about a failure. No process of it is left afterwards.
/// Throws SystemError if it cannot be started.
LaunchEnd run_launch(const std::vector<std::string>& command, const Followed& followed = {});

}  // namespace baton
