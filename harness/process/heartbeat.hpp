// SPDX-License-Identifier: Apache-2.0
// A sign of life from host to host, so that a report of a failure can name a host that is gone or
// cut off: once a second the first rank of each host sends a datagram to that of the next one, in a
// ring. A host that is cut off is silent. Where all ranks of a host died, its kernel refuses what
// is sent to them, which tells at once and also beside a rank that merely sleeps.
#pragma once

#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "harness/machine/placement.hpp"
#include "harness/process/world.hpp"

namespace baton {

/// The address of an interface in the form of IPv6, in which one of IPv4 is "mapped". Nothing if
/// other hosts cannot use it: it is down, of loopback, or of one link alone.
std::optional<in6_addr> usable_address(const ifaddrs& interface);

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

  /// Sends a sign of life, takes what has arrived, and asks a rank of the host before; to be called
  /// at least once a second. Async-signal-safe.
  void tick();

  /// Tells the next host that this host ends in good order, so that its silence means nothing.
  /// Async-signal-safe.
  void take_leave() const;

  /// The milliseconds since the host before this one in the ring was last heard; 0 if it was never
  /// heard or took its leave, if its kernel said that its first rank died, or if this process does
  /// not listen. Async-signal-safe.
  int silence_ms() const;
  /// True if the host before this one was heard and none of its ranks runs any more, without a
  /// leave. It takes one tick a rank to find out. Async-signal-safe.
  bool has_died() const;
  /// The number of the host that this process listens to; `heard_ranks` are its ranks.
  int heard_host() const { return heard_host_; }
  const std::vector<int>& heard_ranks() const { return heard_ranks_; }

 private:
  enum class Word : std::uint64_t { here, leaving };
  /// A datagram; `run` distinguishes those of this run from strays.
  struct Sign {
    std::uint64_t run = 0;
    Word word = Word::here;
  };
  void send(Word word) const;
  void ask();

  int socket_ = -1;  // every rank has one; only the first of a host sends and listens
  std::uint64_t run_ = 0;
  std::vector<sockaddr_storage> next_;  // the addresses of the next host, which may have several
  int heard_host_ = 0;
  std::vector<int> heard_ranks_;
  std::vector<std::uint16_t> heard_ports_;  // of these ranks, in the first rank of this host alone
  sockaddr_storage heard_from_{};
  int probe_ = -1;         // a socket that is connected to one of them after the other
  std::size_t asked_ = 0;  // how many of them it was connected to
  std::size_t dead_ = 0;   // how many of them are known not to run
  std::int64_t last_heard_ms_ = 0;
  bool has_left_ = false;
};

}  // namespace baton
