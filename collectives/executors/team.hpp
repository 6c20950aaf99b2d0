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

/// The calls of a team that travel. Each is collective over its members, and throws SystemError if
/// a member cannot be reached.
class TeamTransport {
 public:
  virtual ~TeamTransport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Writes the `bytes` bytes that each member gives to `all`, by rank.
  virtual void gather(void* all, const void* mine, std::size_t bytes) const = 0;
  /// Overwrites `bytes` bytes at `data` by those of the member `from`.
  virtual void broadcast(void* data, std::size_t bytes, int from) const = 0;
  /// Returns on all members at about the same time.
  virtual void barrier() const = 0;
  /// The same for waits that may be long: a waiting process takes no core.
  virtual void barrier_asleep() const = 0;
};

/// Some of the processes, counted from 0. All calls but `rank`, `size` and `is_member` are
/// collective over them.
class Team {
 public:
  /// This process alone.
  Team() = default;
  explicit Team(std::shared_ptr<const TeamTransport> transport) : transport_(std::move(transport)) {}
  /// A team of others.
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
  /// The first text, by rank, that is not empty. All members get the same.
  std::string first(const std::string& text) const;
  /// Overwrites `bytes` bytes at `data` by those of rank 0.
  void broadcast(void* data, std::size_t bytes) const;

  /// The values that all members give, by rank.
  template <class T>
  std::vector<T> gather(const T& mine) const {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(static_cast<std::size_t>(size()), mine);
    if (transport_) transport_->gather(all.data(), &mine, sizeof(T));
    return all;
  }
  /// One row for each process. Every process gives equally many values.
  std::vector<std::vector<double>> gather(const std::vector<double>& mine) const;

  /// The number of members on this process's host, and this process's rank among them.
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
  /// A team of the first `members` processes, which call it together; no other process may.
  virtual Team team(int members) const = 0;
  /// A name or number of this process's host by which the other hosts of the run reach it.
  virtual std::string address() const = 0;
  /// Ends all processes at once with `code`.
  [[noreturn]] virtual void abort(int code) const = 0;

  /// Beats tell the other processes that this one runs; they begin, and end, on all processes at
  /// about the same time. A bootstrap whose launcher looks after its processes needs none.
  virtual void begin_beats() {}
  virtual void end_beats() {}
  /// A process that beats found lost, or the news that another one has reported a failure.
  struct Beat {
    int lost_rank = -1;
    bool failure_reported = false;
  };
  /// One beat, to be called once a second. Async-signal-safe, as is `announce_failure`.
  virtual Beat beat() noexcept { return {}; }
  virtual void announce_failure() noexcept {}
};

/// A process that found no other one of its run. No other process can say so for it.
class MeetingError : public SystemError {
 public:
  using SystemError::SystemError;
};

/// A way to find the processes, by the name that Launcher::bootstrap has.
struct BootstrapEntry {
  /// Joins the run. Throws SystemError with the ranks that did not come.
  std::function<std::unique_ptr<Bootstrap>(int* argc, char*** argv)> join;
  /// The library beneath and its version; needs no run.
  std::function<std::string()> library;
};

/// The ways that are built in.
inline Registry<BootstrapEntry>& bootstraps() {
  static Registry<BootstrapEntry> all("way to find the processes of a run");
  return all;
}

/// Adds one to the registry, before `main`.
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
