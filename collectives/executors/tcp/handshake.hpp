// SPDX-License-Identifier: Apache-2.0
// The messages by which rank 0 and another rank authenticate each other on a new connection.
//
//   rank 0:  Challenge   a nonce, and whether it serves the other's address
//   other:   Hello       its rank and channel, a nonce and its proof
//   rank 0:  Reply       whether it accepts, the number of the rank's slot and its own proof
//
// A proof is the HMAC of all that was said before under the run's secret. Both nonces are fresh, so
// no proof serves twice. Then on control channels, until all ranks have joined:
//
//   rank 0:  JoinStatus  once a second, and one at the end
//   other:   a byte      for each
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/executors/tcp/socket.hpp"

namespace baton::tcp {

/// The ports at which rank 0 may listen, from Launcher::port on.
constexpr int rendezvous_ports = 16;

/// 128 random bits, which nobody can guess.
using Nonce = std::array<std::uint8_t, 16>;
using Proof = std::array<std::uint8_t, 32>;

/// Each rank but 0 has one connection to rank 0 for the calls of teams and one for heartbeats.
enum class Channel : std::int32_t { control, heartbeat };

struct Challenge {
  static constexpr std::uint64_t baton = 0x32304e4f544142;  // "BATON02"
  std::uint64_t magic = baton;
  Nonce nonce{};
  std::int32_t is_served = 1;
  std::int32_t unused = 0;
};

struct Hello {
  std::uint64_t run = 0;  // Launcher::run, which tells runs apart and proves nothing
  std::int32_t rank = 0;
  std::int32_t size = 0;
  Channel channel = Channel::control;
  std::int32_t unused = 0;
  Nonce nonce{};
  Nonce slot{};  // for heartbeats: the slot that the rank's control channel was given
  Proof proof{};
};

enum class Status : std::int32_t { accepted, wrong_run, wrong_secret, rank_taken };

struct Reply {
  Status status = Status::accepted;
  std::int32_t unused = 0;
  Nonce slot{};
  Proof proof{};
};

struct JoinStatus {
  enum class Kind : std::int32_t { waiting, complete, ranks_missing };
  Kind kind = Kind::waiting;
  std::array<char, 64> address{};  // of the rank's host, once all have joined
};

/// The connections of one process after the rendezvous: by rank on rank 0, one entry, to rank 0,
/// elsewhere.
struct RankConnections {
  int rank = 0;
  int size = 1;
  /// The address by which the other hosts reach this one.
  std::string address;
  std::vector<Socket> control{};
  std::vector<Socket> heartbeat{};

  /// The control channel to rank `to`. A rank that is not 0 reaches rank 0 alone.
  const Socket& control_of(int to) const { return control[rank == 0 ? to : 0]; }
};

/// Draws a nonce from the system. Throws SystemError if that has no random numbers.
Nonce fresh_nonce();

/// HMAC-SHA-256 of `text` under `secret`; zeros without a secret. The library is OpenSSL's
/// libcrypto, which is opened at the first secret. Throws MeetingError if this host has none.
Proof prove(const std::string& secret, std::string_view text);
/// The proof of the rank that sends `hello`.
Proof proof_of(const Hello& hello, const Nonce& challenge, const std::string& secret);
/// The proof of rank 0, which answers `hello` by `reply`.
Proof proof_of(const Reply& reply, const Hello& hello, const std::string& secret);

}  // namespace baton::tcp
