// SPDX-License-Identifier: Apache-2.0
// The processes of a run and what they tell one another outside of timed rounds, whatever started
// them: Team has the calls, TeamTransport the few that MPI or TCP must provide, and Bootstrap finds
// the processes and ends them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/registry.hpp"

namespace baton {

/// The transport of a team's calls. Each call is collective over the members, and throws
/// SystemError if a member cannot be reached.
class TeamTransport {
 public:
  virtual ~TeamTransport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Writes the `bytes` bytes of each member to `all`, by rank.
  virtual void gather(void* all, const void* mine, std::size_t bytes) const = 0;
  /// Copies `bytes` bytes at `data` from member `from` to all members.
  virtual void broadcast(void* data, std::size_t bytes, int from) const = 0;
  /// Returns on all members at about the same time.
  virtual void barrier() const = 0;
  /// A barrier for waits that may be long: a waiting process should use no core.
  virtual void barrier_asleep() const = 0;
};

/// Some processes of a run, numbered from 0. All calls but `rank`, `size` and `is_member` are
/// collective over them.
class Team {
 public:
  /// Makes a team of this process alone.
  Team() = default;
  explicit Team(std::shared_ptr<const TeamTransport> transport) : transport_(std::move(transport)) {}
  /// A team that this process is not a member of.
  static Team of_others();

  int rank() const { return transport_ ? transport_->rank() : 0; }
  int size() const { return transport_ ? transport_->size() : 1; }
  /// False in a process that is not part of the team; nothing else may be called there.
  bool is_member() const { return is_member_; }

  double min(double value) const;
  double max(double value) const;
  std::int64_t sum(std::int64_t value) const;
  /// Overwrites each number by its sum over the members, which is added up in the order of ranks.
  void sum(std::span<double> values) const;
  /// True if `mine` is true on all members.
  bool all(bool mine) const;
  /// The first text, by rank, that is not empty; all members get it.
  std::string first(const std::string& text) const;
  /// Copies `bytes` bytes at `data` from rank 0 to all members.
  void broadcast(void* data, std::size_t bytes) const;

  /// The values that all members give, by rank.
  template <class T>
  std::vector<T> gather(const T& mine) const {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(static_cast<std::size_t>(size()), mine);
    if (transport_) transport_->gather(all.data(), &mine, sizeof(T));
    return all;
  }
  /// The values of all members, one row each, by rank. Every member gives equally many values.
  std::vector<std::vector<double>> gather(const std::vector<double>& mine) const;

  /// The rank of this process among the members on its host, and the number of these members.
  struct Host {
    int rank = 0;
    int size = 1;
  };
  Host host() const;
  /// For each member a number that two of them share exactly if they run on the same host.
  std::vector<std::uint64_t> gather_hosts() const;

  void barrier() const;
  /// Waits for all members, asleep: a waiting process must not take the core of a measured one.
  void wait_asleep() const;

 private:
  std::shared_ptr<const TeamTransport> transport_;  // null for a process alone
  bool is_member_ = true;
};

/// All processes of a run that a launcher started.
class Bootstrap {
 public:
  virtual ~Bootstrap() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// A team of the first `members` processes, which must all call it; no other process may.
  virtual Team team(int members) const = 0;
  /// A name or number of this process's host by which the other hosts of the run reach it.
  virtual std::string address() const = 0;
  /// Ends all processes at once with `code`.
  [[noreturn]] virtual void abort(int code) const = 0;

  /// Begins beats, which tell the other processes that this one runs; all processes begin and end
  /// them at about the same time. A bootstrap whose launcher looks after its processes needs none.
  virtual void begin_beats() {}
  virtual void end_beats() {}
  /// News of other processes: the rank that beats found lost, or that a process reported a failure.
  struct Beat {
    int lost_rank = -1;
    bool failure_reported = false;
  };
  /// Sends a beat and reads those of other processes, to be called once a second.
  /// Async-signal-safe, as is `announce_failure`.
  virtual Beat beat() noexcept { return {}; }
  virtual void announce_failure() noexcept {}
};

/// The error of a process that found no other process of its run. No other process can report it.
class MeetingError : public SystemError {
 public:
  using SystemError::SystemError;
};

/// A way for the processes of a run to find one another, by the name that Launcher::bootstrap has.
struct BootstrapEntry {
  /// Joins the run. Throws SystemError with the ranks that did not come.
  std::function<std::unique_ptr<Bootstrap>(int* argc, char*** argv)> join;
  /// The library beneath and its version. The function needs no run.
  std::function<std::string()> library;
};

/// All ways to find the processes of a run that are built in, by name.
inline Registry<BootstrapEntry>& bootstraps() {
  static Registry<BootstrapEntry> all("way to find the processes of a run");
  return all;
}

/// Adds a way to find the processes of a run to the registry, before `main`.
struct RegisteredBootstrap {
  RegisteredBootstrap(const std::string& name, const BootstrapEntry& entry) {
    add_or_exit([&] { bootstraps().add(name, entry); });
  }
};

/// The bootstrap of this process, which executors make their teams of; null while it runs alone.
/// World sets it.
inline const Bootstrap*& the_bootstrap() {
  static const Bootstrap* joined = nullptr;
  return joined;
}

/// A team of the first `members` processes of the run, for an executor of `members` ranks. To be
/// called by them alone. Throws UsageError if fewer run.
Team team_of_first(int members);

}  // namespace baton
