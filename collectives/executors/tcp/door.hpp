// SPDX-License-Identifier: Apache-2.0
// A port at which the ranks of a run come in, and strangers too. All guests are listened to at
// once, so that one who is silent keeps nobody waiting.
#pragma once

#include <poll.h>

#include <cstddef>
#include <list>
#include <span>
#include <vector>

#include "collectives/executors/tcp/proof.hpp"
#include "collectives/executors/tcp/socket.hpp"

namespace baton {

/// Someone who has connected and has not said all yet.
struct Guest {
  Socket socket;
  Number number{};  // for whoever makes use of one
  std::vector<std::byte> said{};
};

class Door {
 public:
  /// Guests come in at `port`, and each has `bytes` bytes to say.
  Door(Socket port, std::size_t bytes) : port_(std::move(port)), bytes_(bytes) {}
  virtual ~Door() = default;

  /// The guests that have said all. Waits until one has, until one of the descriptors `others` can
  /// be read, or so many milliseconds.
  std::vector<Guest> listen(int milliseconds, std::span<const int> others = {});

 protected:
  /// Speaks first to a guest who comes in. False turns the guest away.
  virtual bool greet(Guest& /*guest*/) { return true; }

 private:
  void let_in();
  bool hear(Guest& guest);

  Socket port_;
  std::size_t bytes_;
  std::list<Guest> guests_;  // those who came first stand first
  std::vector<pollfd> polled_;
};

}  // namespace baton
