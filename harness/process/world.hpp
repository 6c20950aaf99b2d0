// SPDX-License-Identifier: Apache-2.0
// The processes of a run: how they are started, what they tell one another, and how they end when
// one of them fails.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "collectives/executors/team.hpp"

namespace baton {

/// All processes of this run. Joins and leaves it if a launcher started this process.
class World {
 public:
  /// Takes the world that a launcher made, over MPI or TCP as Launcher says, or makes one of this
  /// process alone. Throws UsageError if this build lacks the way that the launcher needs.
  World(int* argc, char*** argv);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return all_.rank(); }
  int size() const { return all_.size(); }
  const Team& all() const { return all_; }

  /// Throws UsageError unless `processes` run; 0 asks for a single one.
  void require(int processes) const;

  /// The first `members` processes. Collective over all.
  Team team(int members) const;

  /// How the processes found one another; null for a process alone.
  Bootstrap* bootstrap() const { return bootstrap_.get(); }

  /// Ends all processes at once with `code`.
  [[noreturn]] void abort(int code) const;

 private:
  std::unique_ptr<Bootstrap> bootstrap_;
  Team all_;
};

/// The MPI library and its version, "no MPI" if this build has none. Needs no MPI that runs.
std::string mpi_library();

/// The exit codes of the benches that have a meaning of their own; docs/runs.md has all.
struct ExitCode {
  static constexpr int system = 1, usage = 2, schedule = 3, wrong = 4, failed = 5, skipped = 6;
  static constexpr int interrupted = 130, reader_left = 141;  // as shells have them
};

/// True in a process that mpirun, mpiexec, srun or torchrun started.
bool is_launched();

/// The executor of processors that runs where the processes found one another as in this run, or
/// would if it starts them itself: "mpi" or, without MPI, "tcp".
std::string host_executor();

/// This process's rank according to its launcher's environment, 0 without a launcher.
int launched_rank();

/// The number of processes according to the launcher's environment, 0 without a launcher.
int launched_size();

/// Returns the program's exit code: that of `body`, or that of its exception, which becomes one
/// line of one rank: 2 for UsageError, 3 for ScheduleError, 4 for WrongResult, 1 for anything else.
int exit_code_of(const std::function<int()>& body);

/// Makes the world, runs `body` in it and ends it in good order. An error that all ranks share
/// passes through; an error that may concern this rank alone ends all processes.
void run_in_world(int* argc, char*** argv, const std::function<void(const World&)>& body);

/// Tells the other ranks that a failure has been reported, so that they do not report it
/// again. Async-signal-safe. Does nothing before the first Watchdog.
void announce_failure();

/// Reports dead, stopped and slow ranks, and ends the launch. Works through signals alone, so
/// that nothing runs beside a measured round but a handler of a few microseconds once a second
/// (SIGALRM): it compares the time with the limit, every few seconds looks whether the next rank
/// of this host still runs, and gives the bootstrap its beat, which finds lost ranks of other
/// hosts. The first ranks of several hosts send signs of life to one another, so that a report
/// names a host that is silent. SIGTERM means that a launcher ends the survivors of a dead rank,
/// SIGUSR1 that another rank has reported, SIGINT that the user interrupts a process without a
/// launcher.
class Watchdog {
 public:
  /// `limit_seconds` for each case; 0 for none. `keeps` says, for an interrupted run, where its
  /// results are and how to go on. Collective over `world`.
  Watchdog(const World& world, int limit_seconds, const std::string& keeps);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// A case begins: reports name it, and its time starts.
  void enter(const std::string& case_name);
};

}  // namespace baton
