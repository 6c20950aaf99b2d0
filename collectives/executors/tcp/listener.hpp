// SPDX-License-Identifier: Apache-2.0
// A port at which the ranks of a run connect, and strangers too. All connections are read at once,
// so that a silent one keeps nobody waiting.
#pragma once

#include <poll.h>

#include <cstddef>
#include <list>
#include <span>
#include <utility>
#include <vector>

#include "collectives/executors/tcp/handshake.hpp"
#include "collectives/executors/tcp/socket.hpp"

namespace baton::tcp {

/// A connection whose first message has not come whole.
struct PendingConnection {
  Socket socket;
  Nonce challenge{};  // for whoever sends one
  std::vector<std::byte> message{};
};

class Listener {
 public:
  /// Listens at `port`. The first message of each connection has `bytes` bytes.
  Listener(Socket port, std::size_t bytes) : port_(std::move(port)), bytes_(bytes) {}
  virtual ~Listener() = default;

  /// The connections whose message has come whole. Waits until there is one, until one of the
  /// descriptors `others` can be read, or for `milliseconds`.
  std::vector<PendingConnection> poll_messages(int milliseconds, std::span<const int> others = {});

 protected:
  /// Sends the first words on a new connection. False closes it.
  virtual bool greet(PendingConnection& /*connection*/) { return true; }

 private:
  void accept_all();
  bool read(PendingConnection& connection) const;

  Socket port_;
  std::size_t bytes_;
  std::list<PendingConnection> pending_;  // the oldest first
  std::vector<pollfd> polled_;
};

}  // namespace baton::tcp
