// SPDX-License-Identifier: Apache-2.0
// The processes of a run, and how they were started.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/executors/team.hpp"

namespace baton {

/// All processes of this run. If a launcher started this process, it joins them here and leaves
/// them at the end.
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

  /// The team of the first `members` processes. Collective over all processes.
  Team team(int members) const;

  /// The bootstrap by which the processes found one another; null for a process alone.
  Bootstrap* bootstrap() const { return bootstrap_.get(); }

  /// Ends all processes at once with `code`.
  [[noreturn]] void abort(int code) const;

 private:
  std::unique_ptr<Bootstrap> bootstrap_;
  Team all_;
};

/// The MPI library and its version, "no MPI" if this build has none. Works without initialised MPI.
std::string mpi_library();

/// What the library that carries the messages of `executor` in this run says is in force, name and
/// value; empty where none tells.
std::vector<std::pair<std::string, std::string>> settings_of_messages(const std::string& executor);

/// The exit codes of the benches that have a meaning of their own; docs/runs.md has all.
struct ExitCode {
  static constexpr int system = 1, usage = 2, schedule = 3, wrong = 4, failed = 5, skipped = 6;
  static constexpr int interrupted = 130, reader_left = 141;  // as shells have them
};

/// True in a process that mpirun, mpiexec, srun or torchrun started.
bool is_launched();

/// The executor on processors that suits the launcher of this run, or a run without a launcher:
/// "mpi" or, without MPI, "tcp".
std::string host_executor();

/// This process's rank according to its launcher's environment, 0 without a launcher.
int launched_rank();

/// The number of processes according to the launcher's environment, 0 without a launcher.
int launched_size();

}  // namespace baton
