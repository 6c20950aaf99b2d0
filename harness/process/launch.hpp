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
  /// Makes the folder. Throws SystemError if that fails.
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
  /// True if the user interrupted this process during the launch, or if its own launcher ended it.
  bool interrupted = false;
  /// Messages of the processes, without "baton: ". If Followed ended the launch, they also say
  /// which ranks were stopped.
  std::vector<std::string> reports;
  /// What the launcher itself said in one line, such as why it could not start ranks; may be empty.
  std::string launcher_words;
  /// The signal that the launcher says a process died of, such as "signal 9 (Killed)"; may be
  /// empty.
  std::string signal;
  /// The rank that died and its signal, such as "rank 1 died of signal 9 (Killed)", or the rank
  /// that ended before the others where the launcher does not say that; may be empty.
  std::string death;
  double seconds = 0;

  /// What says most about why the launch ended: a process, or else the launcher; may be empty.
  const std::string& cause() const {
    return !reports.empty() ? reports.front() : !death.empty() ? death : launcher_words;
  }
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
/// reports and for what the launcher says about a failure. No process of it is left afterwards.
/// Throws SystemError if it cannot be started.
LaunchEnd run_launch(const std::vector<std::string>& command, const Followed& followed = {});

}  // namespace baton
