// SPDX-License-Identifier: Apache-2.0
// The cores of a host that a run has, the threads that it keeps busy on them, and what others do
// there meanwhile.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collectives/executors/cores.hpp"
#include "collectives/executors/team.hpp"

namespace baton {

/// Runs `body` for 0 .. count - 1, in any order, by a thread on each of `cores`, or by this thread
/// alone if fewer than two have work. Threads begin on their cores and may leave: a thread that
/// starts where its process is bound stays there for longer than short work takes.
void run_on(const std::vector<int>& cores, int count, const std::function<void(int)>& body);

/// The time of a core since the start of the system, in ticks. Interrupts count as busy; time that
/// a hypervisor gave to others is stolen.
struct CoreTicks {
  double busy = 0;
  double stolen = 0;
  double all = 0;
};

/// The ticks of each core, by its number; empty if the system does not tell. `root` is the folder
/// that /proc is in; a test makes one up.
std::map<int, CoreTicks> core_ticks(const std::filesystem::path& root = "/");

/// Seconds that `cores` were busy; nothing if `ticks` lacks one of them, or if there are none.
std::optional<double> busy_seconds(const std::map<int, CoreTicks>& ticks, const std::vector<int>& cores);

/// The load of the fullest host while a case was timed.
struct Conditions {
  /// Physical cores that the processes of this launch may use.
  int cores = 0;
  /// Threads of the case that are busy at once.
  int busy_threads = 0;
  /// Cores that other processes used, on average over about a second; empty if it is not known, as
  /// on several hosts.
  std::optional<double> other_load;
  /// The cores whose whole time a quota allows; empty without one.
  std::optional<double> quota = {};
  /// How often the quota held processes of its control groups back while the case was timed.
  std::int64_t throttled = 0;

  /// True if threads wait for cores or for time of them, so that times say little about the case.
  bool oversubscribed() const { return busy_threads > quota.value_or(cores) || busy_threads > cores; }
  /// True if threads of the case waited, for half of the time or more, for a core that others used.
  bool shared_cores() const { return busy_threads + other_load.value_or(0) > cores + 0.5; }
};

/// The cores in words, such as "2 cores", or "1.5 of 2 cores (quota)".
std::string cores_in_words(int cores, std::optional<double> quota);
std::string cores_in_words(const Cores& cores);

/// Watches the cores of this host.
class HostLoad {
 public:
  /// Begins to watch the cores that the launch may use. Collective over the team.
  explicit HostLoad(const Team& team);

  /// Begins to count how often the quota holds processes back.
  void begin_case();
  /// The conditions of a case whose ranks, `team`, have `threads_per_rank` busy threads each, and
  /// which was just timed. Collective over the team.
  Conditions conditions(const Team& team, int threads_per_rank);

 private:
  struct Reading {
    double seconds = 0;       // of a steady clock
    double busy = 0;          // seconds of all cores
    double of_processes = 0;  // seconds of the processor that the ranks used
  };
  std::optional<Reading> read(const Team& team) const;
  std::optional<double> other_load(const Team& team);

  Cores cores_;
  std::vector<int> threads_;  // hardware threads of the cores
  std::int64_t stops_before_ = 0;
  std::deque<Reading> readings_;  // the oldest is at least a second old, if one is
};

}  // namespace baton
