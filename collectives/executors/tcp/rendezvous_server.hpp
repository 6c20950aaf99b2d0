// SPDX-License-Identifier: Apache-2.0
// Rank 0 in a rendezvous: it listens until every rank has joined, and answers whoever connects.
//
//   Each rank has a slot of two connections, first its control channel and then its heartbeat
//   channel. A slot is free again once a connection has ended, or once its rank has left messages
//   without an answer. A rank has joined when it has both connections and has answered a message.
//   Where the run has no secret, only the addresses of the run's hosts are served.
//
// Time is counted in seconds that rank 0 itself ran. A pause of rank 0 costs no rank its slot.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "collectives/executors/launcher.hpp"
#include "collectives/executors/tcp/handshake.hpp"
#include "collectives/executors/tcp/listener.hpp"

namespace baton::tcp {

class RendezvousServer : private Listener {
 public:
  /// Listens at one of the run's ports. Throws SystemError if all are taken.
  explicit RendezvousServer(const Launcher& launcher);

  /// The connections to all ranks. Throws SystemError with the ranks that are missing once none has
  /// joined for `seconds`.
  RankConnections accept_all(double seconds);

 private:
  struct RankSlot {
    Socket control, heartbeat;
    Nonce number{};
    int unanswered = 0;  // messages
    bool has_joined = false;
  };

  bool greet(PendingConnection& connection) override;
  bool is_served(const Socket& connection) const;
  void answer(PendingConnection connection);
  Status status_of(const Hello& hello, const Nonce& challenge) const;
  static void read_answers(RankSlot& slot);
  static void send(RankSlot& slot, const JoinStatus& message);
  std::vector<int> missing() const;
  [[noreturn]] void give_up(double seconds);
  std::string own_address() const;
  RankConnections take_connections(double seconds);

  const Launcher& launcher_;
  std::set<std::string> hosts_;  // addresses of the run's hosts, where there is no secret
  std::vector<RankSlot> slots_;  // by rank; that of rank 0 stays empty
};

}  // namespace baton::tcp
