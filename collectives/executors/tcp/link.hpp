// SPDX-License-Identifier: Apache-2.0
// Messages over the connection to one other rank.
//
// On a connection stand frames: a head with the number of the round, the number of the message and
// its bytes, then these. A frame is read straight into the memory of its receive. If the schedule
// has not reached that receive, the frame is kept aside, since another one behind it may be needed
// sooner. Frames of a later round stay in the connection until that round begins here, so a rank
// that runs ahead is held by the connection's own buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "collectives/executors/tcp/socket.hpp"

namespace baton::tcp {

/// The connection to one other rank, and what is under way on it.
class Link {
 public:
  explicit Link(int peer) : peer_(peer), staging_(staging_bytes) {}

  void connect(Socket socket) { socket_ = std::move(socket); }
  const Socket& socket() const { return socket_; }
  int peer() const { return peer_; }

  void begin_round(std::uint32_t round);
  /// Sends message `tag` of this round. `step`, unless it is negative, is appended to `done` once
  /// the message is sent.
  void send(int step, std::span<const std::byte> from, int tag, std::vector<int>& done);
  /// Receives message `tag` of this round. `step`, unless it is negative, is appended to `done`
  /// once the message has come. Throws SystemError if the connection has closed before.
  void receive(int step, std::span<std::byte> into, int tag, std::vector<int>& done);
  /// Announces this rank to the peer at a barrier.
  void send_token();
  /// Takes one announcement of the peer at a barrier; false if none has come. Throws SystemError if
  /// none has come and the connection is closed.
  bool take_token();

  /// Events to poll for: POLLIN while frames of this round may come, POLLOUT while frames wait to
  /// go.
  short events() const;
  /// True if the header of a frame has been read whose round has not begun. `go_on` looks again.
  bool has_staged_frame() const { return !in_body_ && staged() >= sizeof(Head); }
  /// Sends and receives what it can without waiting. Appends the steps whose messages have
  /// finished.
  void go_on(std::vector<int>& done);

 private:
  static constexpr std::size_t staging_bytes = std::size_t{64} << 10;
  static constexpr std::int32_t token_tag = -1;
  static constexpr std::int32_t most_messages = 1 << 24;  // in a round, and of one rank
  static constexpr std::uint64_t most_bytes = std::uint64_t{1} << 40;
  static constexpr int none = -1;

  struct Head {
    std::uint32_t round = 0;
    std::int32_t tag = 0;
    std::uint64_t bytes = 0;
  };
  struct Outgoing {
    int step;
    Head head;
    std::span<const std::byte> body;
    std::size_t sent;  // of head and body
  };
  /// Message number `tag` of this round from the peer.
  struct Incoming {
    bool is_posted = false;  // by its receive
    int step = none;
    std::span<std::byte> into;
    bool is_aside = false;  // it came before its receive
    bool is_complete = false;
    std::vector<std::byte> aside;
  };

  Incoming& incoming(int tag);
  void write_on(std::vector<int>& done);
  void read_on(std::vector<int>& done);
  bool has_head();
  bool begin_body();
  bool fill_body();
  void deliver(Incoming& one, std::vector<int>& done);
  void require_size(const Incoming& one, std::size_t bytes) const;
  std::size_t staged() const { return end_ - begin_; }

  int peer_;
  Socket socket_;
  std::uint32_t round_ = 0;
  int tokens_ = 0;
  int awaited_ = 0;  // posted receives that have not finished
  bool is_closed_ = false;
  std::deque<Outgoing> outgoing_;
  std::vector<Incoming> incoming_;  // by the number of the message
  std::vector<std::byte> staging_;  // bytes that were read and belong to [begin_, end_)
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool in_body_ = false;
  Head head_;                       // of the frame that is being read
  std::span<std::byte> body_left_;  // and what is missing of it
};

}  // namespace baton::tcp
