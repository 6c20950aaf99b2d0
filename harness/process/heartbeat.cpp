// SPDX-License-Identifier: Apache-2.0
// A ring costs each host one datagram a second for each address of the next one, however many hosts
// there are.
#include "harness/process/heartbeat.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <ctime>

namespace baton {
namespace {

constexpr std::size_t most_addresses = 4;

/// The IPv4 addresses of this host but for those of loopback, as numbers; 0 where there are fewer.
std::vector<double> own_addresses() {
  std::vector<double> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) list = nullptr;
  for (const ifaddrs* one = list; one != nullptr && found.size() < most_addresses; one = one->ifa_next) {
    const bool is_usable = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || !is_usable) continue;
    found.push_back(ntohl(reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr));
  }
  freeifaddrs(list);
  found.resize(most_addresses, 0);
  return found;
}

sockaddr_in address_of(std::uint32_t host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(host);
  address.sin_port = htons(port);
  return address;
}

/// A socket at a free port of this host; the port is 0 if there is none.
int open_socket(std::uint16_t& port) {
  const int opened = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address = address_of(INADDR_ANY, 0);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  const bool is_bound = opened >= 0 && bind(opened, any, size) == 0 && getsockname(opened, any, &size) == 0;
  port = is_bound ? ntohs(address.sin_port) : 0;
  return opened;
}

/// The time on the monotonic clock in milliseconds.
std::int64_t now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

Heartbeat::~Heartbeat() { stop(); }

void Heartbeat::stop() {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
  last_heard_ms_ = 0;
  has_left_ = false;
  next_.clear();
}

void Heartbeat::start(const World& world, const Placement& placement) {
  stop();
  if (placement.hosts() < 2) return;
  const int host = placement.host_of(world.rank()), hosts = placement.hosts();
  const bool is_first = placement.members(host).front() == world.rank();
  std::uint16_t port = 0;
  if (is_first) socket_ = open_socket(port);
  std::vector<double> row = own_addresses();
  row.push_back(port);
  row.push_back(
      static_cast<double>(std::chrono::steady_clock::now().time_since_epoch().count() % (1LL << 50)));
  const auto rows = world.all().gather(row);
  run_ = static_cast<std::uint64_t>(rows[0].back());
  const std::vector<double>& next = rows[placement.members((host + 1) % hosts).front()];
  for (std::size_t i = 0; i < most_addresses && is_first && next[most_addresses] > 0; ++i)
    if (next[i] > 0)
      next_.push_back(
          address_of(static_cast<std::uint32_t>(next[i]), static_cast<std::uint16_t>(next[most_addresses])));
  heard_host_ = (host + hosts - 1) % hosts;
  heard_ranks_ = placement.members(heard_host_);
}

void Heartbeat::send(Word word) const {
  const Sign sign{run_, word};
  for (const sockaddr_in& address : next_)
    sendto(socket_, &sign, sizeof sign, 0, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

void Heartbeat::take_leave() const { send(Word::leaving); }

void Heartbeat::tick() {
  if (socket_ < 0) return;
  send(Word::here);
  Sign received;
  while (recv(socket_, &received, sizeof received, 0) >= 0) {
    if (received.run != run_) continue;
    last_heard_ms_ = now_ms();
    has_left_ = received.word == Word::leaving || has_left_;
  }
}

int Heartbeat::silence_ms() const {
  return last_heard_ms_ == 0 || has_left_ ? 0 : static_cast<int>(now_ms() - last_heard_ms_);
}

}  // namespace baton
