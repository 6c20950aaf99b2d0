// SPDX-License-Identifier: Apache-2.0
// Bootstrap `tcp`: how the processes of a run find one another without MPI, calls of teams over
// their connections to rank 0, and heartbeats that find lost processes.
//
//   rendezvous: rank 0 listens at a port that all know; the others connect to it, again and again
//               until it accepts them or the time is up (rendezvous_server.hpp and _client.hpp)
//   gather:     each rank sends its bytes to rank 0, which sends all bytes to each
//   broadcast:  through rank 0
//   heartbeat:  once a second every rank sends a byte to rank 0, and rank 0 one to every rank; who
//               is silent for 8 s, or has closed its connection, is lost
//
// A call waits asleep in the kernel. A team of the first ranks uses the same connections, since all
// processes make their calls in the same order.
#include <signal.h>
#include <time.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "collectives/executors/launcher.hpp"
#include "collectives/executors/tcp/handshake.hpp"
#include "collectives/executors/tcp/rendezvous_client.hpp"
#include "collectives/executors/tcp/rendezvous_server.hpp"
#include "collectives/executors/tcp/socket.hpp"
#include "collectives/executors/team.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton::tcp {
namespace {

/// The connections to the other processes of the run. Rank 0 waits until none has come for
/// BATON_MEETING_SECONDS, 60 if it is not set, and the others look for it so long. Throws
/// SystemError on rank 0 and the ranks that joined if some did not; MeetingError on a rank that
/// found no rank 0.
RankConnections connect(const Launcher& launcher) {
  if (launcher.size == 1) return {};
  prove(launcher.secret, "");  // a host that cannot says so before the others wait for it
  if (has_no_address(launcher.address))
    throw MeetingError("rank " + std::to_string(launcher.rank) + " finds no address of '" + launcher.address +
                       "', where rank 0 should be: is MASTER_ADDR the name of its host, and known here?");
  const double seconds = launcher.meeting_seconds;
  return launcher.rank == 0 ? RendezvousServer(launcher).accept_all(seconds) : join_rank_0(launcher, seconds);
}

class RootTransport : public TeamTransport {
 public:
  RootTransport(const RankConnections& connections, int members)
      : connections_(connections), members_(members) {}

  int rank() const override { return connections_.rank; }
  int size() const override { return members_; }

  void gather(void* all, const void* mine, std::size_t bytes) const override {
    auto* rows = static_cast<char*>(all);
    if (connections_.rank == 0) {
      if (bytes > 0) std::memcpy(rows, mine, bytes);
      for (int rank = 1; rank < members_; ++rank) receive(rows + rank * bytes, bytes, rank);
      for (int rank = 1; rank < members_; ++rank) send(rows, members_ * bytes, rank);
    } else {
      send(mine, bytes, 0);
      receive(rows, members_ * bytes, 0);
    }
  }

  void broadcast(void* data, std::size_t bytes, int from) const override {
    if (connections_.rank == from && from > 0) return send(data, bytes, 0);
    if (connections_.rank > 0 || from > 0) receive(data, bytes, connections_.rank > 0 ? 0 : from);
    for (int rank = 1; connections_.rank == 0 && rank < members_; ++rank)
      if (rank != from) send(data, bytes, rank);
  }

  void barrier() const override { gather(nullptr, nullptr, 0); }
  void barrier_asleep() const override { barrier(); }

 private:
  /// The header before the bytes of a call, by which calls that do not match are found.
  struct Head {
    std::uint64_t members = 0;
    std::uint64_t bytes = 0;
  };

  void send(const void* data, std::size_t bytes, int to) const {
    const Head head{static_cast<std::uint64_t>(members_), bytes};
    if (!connections_.control_of(to).send_all(&head, sizeof head) ||
        !connections_.control_of(to).send_all(data, bytes))
      throw_lost(to);
  }

  void receive(void* data, std::size_t bytes, int from) const {
    Head head;
    if (!connections_.control_of(from).receive_all(&head, sizeof head)) throw_lost(from);
    if (head.members != static_cast<std::uint64_t>(members_) || head.bytes != bytes)
      throw SystemError("rank " + std::to_string(from) + " makes another call than rank " +
                        std::to_string(connections_.rank) + ": do all ranks have the same flags?");
    if (!connections_.control_of(from).receive_all(data, bytes)) throw_lost(from);
  }

  const RankConnections& connections_;
  int members_;
};

time_t seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

class TcpBootstrap : public Bootstrap {
 public:
  TcpBootstrap()
      : connections_(connect(launcher())),
        heard_(connections_.heartbeat.size()),
        has_left_(connections_.heartbeat.size()) {}

  int rank() const override { return connections_.rank; }
  int size() const override { return connections_.size; }
  Team team(int members) const override {
    if (members == 1) return Team();
    return Team(std::make_shared<const RootTransport>(connections_, members));
  }
  std::string address() const override { return connections_.address; }

  [[noreturn]] void abort(int code) const override {
    say('f');
    std::_Exit(code);
  }

  void begin_beats() override {
    heard_.assign(heard_.size(), seconds_now());
    has_left_.assign(has_left_.size(), 0);
    beats_ = 1;
  }
  void end_beats() override {
    beats_ = 0;
    say('q');
  }
  Beat beat() noexcept override;
  void announce_failure() noexcept override { say('f'); }

 private:
  /// Sends `word` to all processes that beats go to. 'b' is a beat, 'f' the news of a failure, and
  /// after 'q' no beats follow.
  void say(char word) const noexcept {
    for (const Socket& one : connections_.heartbeat)
      if (one.is_valid()) one.send_some(&word, 1);
  }
  bool hear(std::size_t from, Beat& found) noexcept;

  RankConnections connections_;
  std::vector<time_t> heard_;   // by connection: when it last said something
  std::vector<char> has_left_;  // and whether it ended its beats
  volatile sig_atomic_t beats_ = 0;
};

/// Reads what connection `from` said. False if its process is lost.
bool TcpBootstrap::hear(std::size_t from, Beat& found) noexcept {
  constexpr time_t longest_silence = 8;
  std::array<char, 64> words{};
  const ssize_t count = connections_.heartbeat[from].receive_some(words.data(), words.size());
  for (ssize_t i = 0; i < count; ++i) {
    found.failure_reported |= words[i] == 'f';
    has_left_[from] = words[i] == 'q' ? 1 : 0;
  }
  const time_t now = seconds_now();
  if (count > 0) heard_[from] = now;
  return has_left_[from] != 0 || (count >= 0 && now - heard_[from] < longest_silence);
}

Bootstrap::Beat TcpBootstrap::beat() noexcept {
  Beat found;
  if (beats_ == 0) return found;
  for (std::size_t from = 0; from < connections_.heartbeat.size(); ++from)
    if (connections_.heartbeat[from].is_valid() && !hear(from, found))
      found.lost_rank = static_cast<int>(from);
  // Rank 0 passes the news on: the others are connected to it alone.
  say(found.failure_reported && connections_.rank == 0 ? 'f' : 'b');
  return found;
}

const RegisteredBootstrap registered{"tcp",
                                     {.join = [](int*, char***) { return std::make_unique<TcpBootstrap>(); },
                                      .library = [] { return std::string("sockets of the system"); }}};

}  // namespace
}  // namespace baton::tcp
