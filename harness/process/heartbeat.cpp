// SPDX-License-Identifier: Apache-2.0
// A ring costs each host one datagram a second for each address of the next one, however many hosts
// there are.
#include "harness/process/heartbeat.hpp"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>

namespace baton {
namespace {

constexpr std::size_t most_addresses = 4;

/// Where a rank can be reached, and what tells its run from others.
struct Place {
  std::array<in6_addr, most_addresses> addresses{};
  std::size_t count = 0;  // of addresses
  std::uint16_t port = 0;
  std::uint64_t run = 0;
};

void add_own_addresses(Place& place) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) list = nullptr;
  for (const ifaddrs* one = list; one != nullptr && place.count < most_addresses; one = one->ifa_next)
    if (const std::optional<in6_addr> address = usable_address(*one))
      place.addresses[place.count++] = *address;
  freeifaddrs(list);
}

/// An address for a socket of `family`; nothing if that is AF_INET and the host's address is of
/// IPv6 alone.
std::optional<sockaddr_storage> address_of(int family, const in6_addr& host, std::uint16_t port) {
  sockaddr_storage address{};
  if (family == AF_INET6) {
    auto& six = reinterpret_cast<sockaddr_in6&>(address);
    six.sin6_family = AF_INET6;
    six.sin6_addr = host;
    six.sin6_port = htons(port);
    return address;
  }
  const bool is_any = IN6_IS_ADDR_UNSPECIFIED(&host);
  if (!is_any && !IN6_IS_ADDR_V4MAPPED(&host)) return std::nullopt;
  auto& four = reinterpret_cast<sockaddr_in&>(address);
  four.sin_family = AF_INET;
  if (!is_any) std::memcpy(&four.sin_addr, &host.s6_addr[12], sizeof four.sin_addr);
  four.sin_port = htons(port);
  return address;
}

/// A socket of `family` at a free port of this host, for IPv4 too; negative if there is none.
int open_socket(int family, std::uint16_t& port) {
  const int opened = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), off = 0;
  if (opened < 0) return opened;
  if (family == AF_INET6) setsockopt(opened, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  sockaddr_storage address = *address_of(family, in6addr_any, 0);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  const bool is_bound = bind(opened, any, size) == 0 && getsockname(opened, any, &size) == 0;
  port =
      is_bound ? ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port) : 0;  // at one place in both
  return opened;
}

/// The time on the monotonic clock in milliseconds.
std::int64_t now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

/// Milliseconds since the datagram came that `socket` gave last; 0 if the kernel does not say.
std::int64_t age_ms(int socket) {
  timeval came{}, now{};
  if (ioctl(socket, SIOCGSTAMP, &came) != 0 || gettimeofday(&now, nullptr) != 0) return 0;
  const std::int64_t age = (now.tv_sec - came.tv_sec) * 1000 + (now.tv_usec - came.tv_usec) / 1000;
  return age < 0 || age > 60'000 ? 0 : age;  // this clock may have been set meanwhile
}

}  // namespace

std::optional<in6_addr> usable_address(const ifaddrs& interface) {
  const bool is_usable = (interface.ifa_flags & IFF_UP) != 0 && (interface.ifa_flags & IFF_LOOPBACK) == 0;
  if (interface.ifa_addr == nullptr || !is_usable) return std::nullopt;
  if (interface.ifa_addr->sa_family == AF_INET) {
    in6_addr mapped{};
    mapped.s6_addr[10] = mapped.s6_addr[11] = 0xff;
    std::memcpy(&mapped.s6_addr[12], &reinterpret_cast<const sockaddr_in*>(interface.ifa_addr)->sin_addr, 4);
    return mapped;
  }
  if (interface.ifa_addr->sa_family != AF_INET6) return std::nullopt;
  const in6_addr address = reinterpret_cast<const sockaddr_in6*>(interface.ifa_addr)->sin6_addr;
  return IN6_IS_ADDR_LINKLOCAL(&address) ? std::nullopt : std::optional(address);
}

Heartbeat::~Heartbeat() { stop(); }

void Heartbeat::stop() {
  take_leave();
  for (int* opened : {&socket_, &probe_}) {
    if (*opened >= 0) close(*opened);
    *opened = -1;
  }
  asked_ = dead_ = 0;
  last_heard_ms_ = 0;
  has_left_ = false;
  next_.clear();
  heard_ports_.clear();
}

void Heartbeat::start(const World& world, const Placement& placement) {
  stop();
  if (placement.hosts() < 2) return;
  const int host = placement.host_of(world.rank()), hosts = placement.hosts();
  const bool is_first = placement.members(host).front() == world.rank();
  Place own;
  int family = AF_INET6;
  socket_ = open_socket(family, own.port);
  if (socket_ < 0) socket_ = open_socket(family = AF_INET, own.port);  // a host without IPv6
  add_own_addresses(own);
  own.run = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  const auto places = world.all().gather(own);
  run_ = places[0].run;
  const Place& next = places[placement.members((host + 1) % hosts).front()];
  for (std::size_t i = 0; i < next.count && is_first && next.port > 0; ++i)
    if (const auto address = address_of(family, next.addresses[i], next.port)) next_.push_back(*address);
  heard_host_ = (host + hosts - 1) % hosts;
  heard_ranks_ = placement.members(heard_host_);
  if (!is_first) return;
  for (const int rank : heard_ranks_) heard_ports_.push_back(places[rank].port);
  probe_ = open_socket(family, own.port);
}

void Heartbeat::send(Word word) const {
  const Sign sign{run_, word};
  for (const sockaddr_storage& address : next_)
    sendto(socket_, &sign, sizeof sign, 0, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

void Heartbeat::take_leave() const { send(Word::leaving); }

void Heartbeat::tick() {
  if (heard_ports_.empty()) return;
  send(Word::here);
  Sign received;
  sockaddr_storage from;
  socklen_t size = sizeof from;
  while (recvfrom(socket_, &received, sizeof received, 0, reinterpret_cast<sockaddr*>(&from), &size) >= 0) {
    if (received.run != run_) continue;
    last_heard_ms_ = now_ms() - age_ms(socket_);
    has_left_ = received.word == Word::leaving || has_left_;
    heard_from_ = from;
  }
  if (last_heard_ms_ != 0) ask();
}

/// Sends a stray to one rank of the host before, and goes on to the next one when the kernel there
/// has refused it. It is sent to the address that signs come from: of the others that a host has,
/// some may be those of this host too.
void Heartbeat::ask() {
  for (; dead_ < heard_ports_.size(); ++dead_) {
    if (asked_ == dead_) {
      (heard_from_.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(heard_from_).sin_port
                                        : reinterpret_cast<sockaddr_in6&>(heard_from_).sin6_port) =
          htons(heard_ports_[asked_++]);
      connect(probe_, reinterpret_cast<const sockaddr*>(&heard_from_), sizeof heard_from_);
    }
    constexpr Sign stray;
    if (::send(probe_, &stray, sizeof stray, 0) >= 0 || errno != ECONNREFUSED) return;
  }
}

bool Heartbeat::has_died() const {
  return !heard_ports_.empty() && dead_ == heard_ports_.size() && !has_left_;
}

int Heartbeat::silence_ms() const {
  return last_heard_ms_ == 0 || has_left_ || dead_ > 0 ? 0 : static_cast<int>(now_ms() - last_heard_ms_);
}

}  // namespace baton
