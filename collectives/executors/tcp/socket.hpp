// SPDX-License-Identifier: Apache-2.0
// TCP connections: a descriptor that closes itself, whole transfers that wait, and single ones that
// do not.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace baton::tcp {

/// A point in time on the monotonic clock until which a call may wait.
class Deadline {
 public:
  explicit Deadline(double seconds);
  /// Milliseconds that are left, at least 0.
  int milliseconds() const;
  bool is_over() const { return milliseconds() == 0; }

 private:
  double ends_;
};

/// A connection, or a port at which connections come in. It is invalid if it could not be made.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket();
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  /// Listens on all interfaces at `port`, or at a free one for 0; invalid if the port is taken.
  static Socket listen_at(int port);
  /// Connects within the deadline; invalid if nobody listens there. Messages leave at once.
  static Socket connect_to(const std::string& host, int port, const Deadline& deadline);
  /// Begins to connect to a numeric address, and does not wait. The socket can be written once it
  /// is connected or refused, which `end_connecting` tells.
  static Socket begin_connecting(const std::string& address, int port);
  /// True if the connection stands.
  bool end_connecting() const;
  /// A connection that has come in; invalid, with errno of accept(2), if there is none.
  Socket accept() const;

  bool is_valid() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  /// The port at which this socket listens.
  int port() const;
  /// Numeric address of this end of the connection.
  std::string own_address() const;
  /// Numeric address of the other end of the connection.
  std::string peer_address() const;

  /// Sends all bytes. False if the other end is gone.
  bool send_all(const void* data, std::size_t bytes) const;
  /// Receives all bytes. False if the other end is gone.
  bool receive_all(void* data, std::size_t bytes) const;
  /// Receives all bytes. False if the other end is gone, or does not answer within the deadline.
  bool receive_all(void* data, std::size_t bytes, const Deadline& deadline) const;

  /// Sends what it can at once and returns the bytes; 0 if none can go, -1 if the other end is
  /// gone. Async-signal-safe.
  ssize_t send_some(const void* data, std::size_t bytes) const noexcept;
  /// Receives what it can at once and returns the bytes; 0 if none has come, -1 if the other end is
  /// gone. Async-signal-safe.
  ssize_t receive_some(void* data, std::size_t bytes) const noexcept;

 private:
  int descriptor_ = -1;
};

/// True for an address of the machine itself, such as 127.0.0.1.
bool is_loopback(const std::string& address);

/// The numeric addresses of a host; none if its name is not known, or not yet.
std::vector<std::string> addresses_of(const std::string& host);

/// True if whoever keeps names has said that `host` has no address. A server that does not answer
/// may do so later.
bool has_no_address(const std::string& host);

/// Throws SystemError for `rank`, whose connection has closed. It waits 3 s first, since a watchdog
/// that runs says more and ends this process meanwhile.
[[noreturn]] void throw_lost(int rank);

}  // namespace baton::tcp
