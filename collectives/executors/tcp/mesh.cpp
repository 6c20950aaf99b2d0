// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/tcp/mesh.hpp"

#include <poll.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "collectives/executors/cores.hpp"
#include "collectives/executors/tcp/handshake.hpp"
#include "collectives/executors/tcp/listener.hpp"
#include "collectives/executors/timing.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton::tcp {
namespace {

/// Address and port at which other ranks reach a rank.
struct Place {
  std::array<char, 256> address{};
  int port = 0;
};

/// What a rank says first on a connection. The nonce is drawn by rank 0, and only ranks know it.
struct Introduction {
  Nonce nonce{};
  int rank = 0;
};

}  // namespace

Mesh::Mesh(const Team& team) : team_(team), has_own_core_(cores_of_rank(team) >= 1) {
  for (int rank = 0; rank < team.size(); ++rank) links_.emplace_back(rank);
  if (team.size() > 1) connect_all(team);
}

void Mesh::connect_all(const Team& team) {
  constexpr double seconds = 30;
  const Deadline deadline(seconds);
  Introduction self{.nonce = fresh_nonce(), .rank = team.rank()};
  team.broadcast(&self.nonce, sizeof self.nonce);
  Socket own = Socket::listen_at(0);
  Place place{.port = own.is_valid() ? own.port() : 0};
  Listener listener(std::move(own), sizeof self);
  const std::string address = the_bootstrap()->address();
  std::strncpy(place.address.data(), address.c_str(), place.address.size() - 1);
  const auto places = team.gather(place);
  const auto hosts = team.gather_hosts();
  std::string failed;
  for (int rank = 0; rank < team.rank(); ++rank) {
    const bool is_here = hosts[rank] == hosts[team.rank()];
    const std::string host = is_here ? "127.0.0.1" : places[rank].address.data();
    Socket made = Socket::connect_to(host, places[rank].port, deadline);
    if (!made.is_valid() && is_here)  // a loopback interface may have the address of IPv6 alone
      made = Socket::connect_to("::1", places[rank].port, deadline);
    if (!made.is_valid() || !made.send_all(&self, sizeof self))
      failed = "rank " + std::to_string(self.rank) + " cannot connect to rank " + std::to_string(rank) +
               " at " + host + ":" + std::to_string(places[rank].port);
    links_[rank].connect(std::move(made));
  }
  failed = team.first(failed);  // before anyone waits for a connection that will not come
  if (!failed.empty()) throw SystemError(failed);
  for (int missing = team.size() - 1 - team.rank(); missing > 0;) {
    if (deadline.is_over())
      throw SystemError("rank " + std::to_string(team.rank()) + " was not connected to by " +
                        std::to_string(missing) + " ranks of this run");
    for (PendingConnection& one : listener.poll_messages(deadline.milliseconds())) {
      Introduction of;
      std::memcpy(&of, one.message.data(), sizeof of);
      const bool is_known = of.nonce == self.nonce && of.rank > team.rank() && of.rank < team.size();
      if (!is_known || links_[of.rank].socket().is_valid()) continue;
      links_[of.rank].connect(std::move(one.socket));
      --missing;
    }
  }
}

void Mesh::begin_round() {
  ++round_;
  for (Link& link : links_) link.begin_round(round_);
}

void Mesh::send(int step, std::span<const std::byte> from, int to, int tag) {
  steps_.push_back(step);
  links_[to].send(step, from, tag, done_);
}

void Mesh::receive(int step, std::span<std::byte> into, int from, int tag) {
  steps_.push_back(step);
  links_[from].receive(step, into, tag, done_);
}

void Mesh::finish(std::vector<int>& done, bool wait) {
  constexpr double seconds_awake = 50e-6;
  for (Link& link : links_)
    if (link.has_staged_frame()) link.go_on(done_);
  move(0);
  const double start = monotonic_seconds();
  while (wait && done_.empty()) move(has_own_core_ && monotonic_seconds() - start < seconds_awake ? 0 : -1);
  for (const int step : done_) std::erase(steps_, step);
  done.insert(done.end(), done_.begin(), done_.end());
  done_.clear();
}

void Mesh::move(int milliseconds) {
  polled_.clear();
  for (const Link& link : links_) {
    const short events = link.socket().is_valid() ? link.events() : short{0};
    polled_.push_back({events == 0 ? -1 : link.socket().descriptor(), events, 0});
  }
  if (poll(polled_.data(), polled_.size(), milliseconds) <= 0) return;
  for (std::size_t i = 0; i < polled_.size(); ++i)
    if (polled_[i].revents != 0) links_[i].go_on(done_);
}

void Mesh::barrier() {
  for (int distance = 1; distance < team_.size(); distance *= 2) {
    Link& to = links_[(team_.rank() + distance) % team_.size()];
    Link& from = links_[(team_.rank() - distance + team_.size()) % team_.size()];
    to.send_token();
    const double start = monotonic_seconds();
    while (!from.take_token()) move(has_own_core_ && monotonic_seconds() - start < 1e-3 ? 0 : -1);
  }
}

}  // namespace baton::tcp
