// SPDX-License-Identifier: Apache-2.0
// Processes: how many there are, who starts them, and the few things that the harness says between them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace baton {

/// Some of the processes, counted from 0, that agree with one another. All calls are collective over them.
class Team {
 public:
  int rank() const;
  int size() const;
  /// False in a process that is not part of the team; nothing else may be called there.
  bool is_member() const;

  double max(double value) const;
  std::int64_t sum(std::int64_t value) const;
  /// The first text that is not empty, by rank; the same on all.
  std::string first(const std::string& text) const;
  /// One row a process. Every process gives as many values.
  std::vector<std::vector<double>> gather(const std::vector<double>& mine) const;
  /// Waits for all, asleep: a waiting process must not take the core of a measured one.
  void wait_asleep() const;

 private:
  friend class World;
  struct Link;
  explicit Team(std::shared_ptr<const Link> link) : link_(std::move(link)) {}
  std::shared_ptr<const Link> link_;
};

/// All processes of this launch. Starts and ends MPI where there is more than one process to be had.
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

  /// Throws UsageError unless `processes` run, or where `processes` is 0 a single one.
  void require(int processes) const;

  /// The first `members` processes. Collective over all.
  Team team(int members) const;

  /// The MPI library and its version, or "none".
  std::string library() const;

  /// Ends all processes at once with `code`.
  [[noreturn]] void abort(int code) const;

 private:
  bool uses_mpi_;
  Team all_;
};

/// True in a process that mpirun, mpiexec or srun started.
bool is_launched();

/// This process's number as its launcher's environment tells it, 0 without one. Needs no MPI.
int launched_rank();

/// How many processes the launcher's environment tells of, 0 without one. Needs no MPI.
int launched_size();

/// Replaces this process by `processes` of the same command under mpiexec, also as root and with more processes than
/// cores, each bound to as many cores as it has busy threads where there are enough; returns at once if they are
/// started already or none is needed. Throws SystemError if there is no mpiexec.
void relaunch(int processes, int threads, char** argv);

}  // namespace baton
