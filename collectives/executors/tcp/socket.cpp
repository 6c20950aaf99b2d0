// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/tcp/socket.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>

#include "collectives/executors/timing.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton::tcp {
namespace {

/// Makes messages leave at once, since a block of a pipeline must not wait for the next one.
void send_at_once(int descriptor) {
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool wait_for(int descriptor, short events, int milliseconds) {
  pollfd one{descriptor, events, 0};
  int ready = 0;
  do ready = poll(&one, 1, milliseconds);
  while (ready < 0 && errno == EINTR);
  return ready > 0;
}

std::string text_of(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) return {};
  const std::string found = text.data(), mapped = "::ffff:";  // IPv4 within IPv6
  return found.rfind(mapped, 0) == 0 ? found.substr(mapped.size()) : found;
}

/// A socket of `family` that listens at `port` on all interfaces.
Socket listen_of(int family, int port) {
  Socket made(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1, off = 0;
  setsockopt(made.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(static_cast<std::uint16_t>(port));
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = six.sin6_port;
  if (family == AF_INET6) setsockopt(made.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  const auto* address =
      family == AF_INET6 ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<const sockaddr*>(&four);
  const socklen_t length = family == AF_INET6 ? sizeof six : sizeof four;
  const bool listens =
      bind(made.descriptor(), address, length) == 0 && listen(made.descriptor(), SOMAXCONN) == 0;
  return listens ? std::move(made) : Socket();
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// The addresses of a host at `port`, as a list that may be empty; `error` is that of
/// getaddrinfo(3), 0 if there is none.
Addresses find(const std::string& host, int port, int flags, int* error = nullptr) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  const int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != nullptr) *error = code;
  return {code == 0 ? found : nullptr, freeaddrinfo};
}

Socket begin(const addrinfo& to) {
  Socket made(socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (made.is_valid() && connect(made.descriptor(), to.ai_addr, to.ai_addrlen) != 0 && errno != EINPROGRESS)
    return {};
  return made;
}

/// True if both ends are this socket. Linux does that if nobody listens at a port that it has just
/// given to the socket.
bool is_connected_to_itself(int descriptor) {
  sockaddr_storage own{}, peer{};
  socklen_t own_length = sizeof own, peer_length = sizeof peer;
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &own_length);
  getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &peer_length);
  return own_length == peer_length && std::memcmp(&own, &peer, own_length) == 0;
}

/// The result of a transfer that returned `count`: 0 if it would have blocked, else `count`.
ssize_t some(ssize_t count) {
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return 0;
  return count;
}

}  // namespace

Deadline::Deadline(double seconds) : ends_(monotonic_seconds() + seconds) {}

int Deadline::milliseconds() const {
  return static_cast<int>(std::max(0.0, std::ceil((ends_ - monotonic_seconds()) * 1e3)));
}

Socket::~Socket() {
  if (is_valid()) close(descriptor_);
}

Socket Socket::listen_at(int port) {
  Socket both = listen_of(AF_INET6, port);
  return both.is_valid() ? std::move(both) : listen_of(AF_INET, port);  // a host without IPv6
}

Socket Socket::connect_to(const std::string& host, int port, const Deadline& deadline) {
  const Addresses addresses = find(host, port, 0);
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next)
    if (Socket made = begin(*one); made.is_valid() &&
                                   wait_for(made.descriptor(), POLLOUT, deadline.milliseconds()) &&
                                   made.end_connecting())
      return made;
  return {};
}

Socket Socket::begin_connecting(const std::string& address, int port) {
  const Addresses one = find(address, port, AI_NUMERICHOST);
  return one ? begin(*one) : Socket();
}

bool Socket::end_connecting() const {
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0) return false;
  if (is_connected_to_itself(descriptor_)) return false;
  fcntl(descriptor_, F_SETFL, fcntl(descriptor_, F_GETFL) & ~O_NONBLOCK);
  send_at_once(descriptor_);
  return true;
}

Socket Socket::accept() const {
  Socket made(accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC));
  if (made.is_valid()) send_at_once(made.descriptor());
  return made;
}

int Socket::port() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);  // at one place in both families
}

std::string Socket::own_address() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &length);
  return text_of(reinterpret_cast<const sockaddr*>(&address), length);
}

std::string Socket::peer_address() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getpeername(descriptor_, reinterpret_cast<sockaddr*>(&address), &length);
  return text_of(reinterpret_cast<const sockaddr*>(&address), length);
}

bool Socket::send_all(const void* data, std::size_t bytes) const {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t now = send(descriptor_, static_cast<const char*>(data) + done, bytes - done, MSG_NOSIGNAL);
    if (now < 0 && errno != EINTR) return false;
    done += static_cast<std::size_t>(std::max<ssize_t>(now, 0));
  }
  return true;
}

bool Socket::receive_all(void* data, std::size_t bytes) const {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t now = recv(descriptor_, static_cast<char*>(data) + done, bytes - done, 0);
    if (now == 0 || (now < 0 && errno != EINTR)) return false;
    done += static_cast<std::size_t>(std::max<ssize_t>(now, 0));
  }
  return true;
}

bool Socket::receive_all(void* data, std::size_t bytes, const Deadline& deadline) const {
  for (std::size_t done = 0; done < bytes;) {
    if (!wait_for(descriptor_, POLLIN, deadline.milliseconds())) return false;
    const ssize_t now = receive_some(static_cast<char*>(data) + done, bytes - done);
    if (now < 0) return false;
    done += static_cast<std::size_t>(now);
  }
  return true;
}

ssize_t Socket::send_some(const void* data, std::size_t bytes) const noexcept {
  return some(send(descriptor_, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT));
}

ssize_t Socket::receive_some(void* data, std::size_t bytes) const noexcept {
  const ssize_t count = recv(descriptor_, data, bytes, MSG_DONTWAIT);
  return count == 0 ? -1 : some(count);
}

std::vector<std::string> addresses_of(const std::string& host) {
  std::vector<std::string> all;
  const Addresses found = find(host, 0, 0);
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next)
    all.push_back(text_of(one->ai_addr, one->ai_addrlen));
  return all;
}

bool has_no_address(const std::string& host) {
  int error = 0;
  const Addresses found = find(host, 0, 0, &error);
  return error == EAI_NONAME || error == EAI_NODATA || error == EAI_FAIL;
}

bool is_loopback(const std::string& address) { return address == "::1" || address.rfind("127.", 0) == 0; }

void throw_lost(int rank) {
  std::this_thread::sleep_for(std::chrono::seconds(3));
  throw SystemError("rank " + std::to_string(rank) + " has closed its connection: it has died or left");
}

}  // namespace baton::tcp
