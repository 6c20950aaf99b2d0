// SPDX-License-Identifier: Apache-2.0
// The processes of a run: how they are started, what they tell one another, and how they end when
// one of them fails.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace baton {

/// Some of the processes, counted from 0. All calls are collective over them.
class Team {
 public:
  int rank() const;
  int size() const;
  /// False in a process that is not part of the team; nothing else may be called there.
  bool is_member() const;

  double max(double value) const;
  std::int64_t sum(std::int64_t value) const;
  /// Overwrites each number by its sum over the members.
  void sum(std::span<double> values) const;
  /// The first text, by rank, that is not empty. All members get the same.
  std::string first(const std::string& text) const;
  /// One row for each process. Every process gives equally many values.
  std::vector<std::vector<double>> gather(const std::vector<double>& mine) const;
  /// Waits for all members, asleep: a waiting process must not take the core of a measured one.
  void wait_asleep() const;

 private:
  friend class World;
  struct CommHandle;
  explicit Team(std::shared_ptr<const CommHandle> comm) : comm_(std::move(comm)) {}
  std::shared_ptr<const CommHandle> comm_;
};

/// All processes of this run. Starts and ends MPI if a launcher started this process.
class World {
 public:
  /// Takes the world that mpirun or srun made, or makes one of this process alone.
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

  /// Ends all processes at once with `code`.
  [[noreturn]] void abort(int code) const;

 private:
  /// To be called by the first `members` processes alone.
  static Team team_of_first(int members);

  bool uses_mpi_;
  Team all_;
};

/// The MPI library and its version. Needs no MPI that runs.
std::string mpi_library();

/// The exit codes of the benches that have a meaning of their own; docs/metrics.md has all.
struct ExitCode {
  static constexpr int system = 1, usage = 2, schedule = 3, wrong = 4, failed = 5;
  static constexpr int interrupted = 130, reader_left = 141;  // as shells have them
};

/// True in a process that mpirun, mpiexec or srun started.
bool is_launched();

/// This process's rank according to its launcher's environment, 0 without a launcher. Needs no MPI.
int launched_rank();

/// The number of processes according to the launcher's environment, 0 without a launcher. Needs no
/// MPI.
int launched_size();

/// Returns the program's exit code: that of `body`, or that of its exception, which becomes one
/// line of one rank: 2 for UsageError, 3 for ScheduleError, 4 for WrongResult, 1 for anything else.
int exit_code_of(const std::function<int()>& body);

/// Makes the world, runs `body` in it and ends it in good order. An error that all ranks share
/// passes through; an error that may concern this rank alone ends all processes.
void run_in_world(int* argc, char*** argv, const std::function<void(const World&)>& body);

/// Tells the ranks of this host that a failure has been reported, so that they do not report it
/// again. Async-signal-safe. Does nothing before the first Watchdog.
void announce_failure();

/// Reports dead, stopped and slow ranks, and ends the launch. Works through signals alone, so that
/// nothing runs beside a measured round but a handler of a few microseconds once a second
/// (SIGALRM): it compares the time with the limit, and every few seconds looks whether the next
/// rank of this host still runs. The first ranks of several hosts send signs of life to one another,
/// so that a report names a host that is silent. SIGTERM means that a launcher ends the survivors of a dead rank,
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
