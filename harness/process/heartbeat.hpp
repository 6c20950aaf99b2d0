// SPDX-License-Identifier: Apache-2.0
// A sign of life from host to host, so that a report of a failure can name a host that is gone or
// cut off: once a second the first rank of each host sends a datagram to that of the next one, in a
// ring.
#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <ctime>
#include <vector>

#include "harness/process/placement.hpp"
#include "harness/process/world.hpp"

namespace baton {

class Heartbeat {
 public:
  ~Heartbeat();
  Heartbeat() = default;
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  /// Starts anew, with the first ranks of the hosts as senders; on a single host nothing is sent. A
  /// network that lets no datagrams through is no error: then nothing is ever heard. Collective
  /// over `world`.
  void start(const World& world, const Placement& placement);
  void stop();

  /// Sends a sign of life and takes what has arrived; to be called once a second. `now` is the
  /// monotonic clock's. Async-signal-safe.
  void tick(time_t now);

  /// The seconds since the host before this one in the ring was last heard, as far as this process
  /// listens and heard it before; otherwise 0. Async-signal-safe.
  int silent_seconds(time_t now) const { return last_heard_ == 0 ? 0 : static_cast<int>(now - last_heard_); }
  /// How many signs of life have arrived.
  int heard() const { return heard_; }
  /// The number of that host, and its ranks.
  int heard_host() const { return heard_host_; }
  const std::vector<int>& heard_ranks() const { return heard_ranks_; }

 private:
  int socket_ = -1;
  std::uint64_t run_ = 0;          // distinguishes this run's datagrams from strays
  std::vector<sockaddr_in> next_;  // the addresses of the next host, which may have several
  int heard_host_ = 0;
  std::vector<int> heard_ranks_;
  time_t last_heard_ = 0;
  int heard_ = 0;
};

}  // namespace baton
