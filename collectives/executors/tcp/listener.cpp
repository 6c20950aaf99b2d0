// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/tcp/listener.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace baton::tcp {

std::vector<PendingConnection> Listener::poll_messages(int milliseconds, std::span<const int> others) {
  polled_.assign(1, {port_.descriptor(), POLLIN, 0});
  for (const PendingConnection& one : pending_) polled_.push_back({one.socket.descriptor(), POLLIN, 0});
  for (const int other : others) polled_.push_back({other, POLLIN, 0});
  std::vector<PendingConnection> complete;
  if (poll(polled_.data(), polled_.size(), milliseconds) <= 0) return complete;
  std::size_t index = 1;
  for (auto one = pending_.begin(); one != pending_.end(); ++index) {
    const bool is_open = polled_[index].revents == 0 || read(*one);
    if (is_open && one->message.size() == bytes_) complete.push_back(std::move(*one));
    one = is_open && one->socket.is_valid() ? std::next(one) : pending_.erase(one);
  }
  if (polled_[0].revents != 0) accept_all();
  return complete;
}

/// Accepts all who wait at the port. If there are too many, those that have been silent for longest
/// are closed: a rank among them connects again.
void Listener::accept_all() {
  constexpr std::size_t most = 256;
  while (true) {
    PendingConnection one{port_.accept()};
    const bool is_full = one.socket.is_valid() ? pending_.size() == most : errno == EMFILE || errno == ENFILE;
    if (!one.socket.is_valid() && (!is_full || pending_.empty())) return;
    if (is_full) pending_.pop_front();
    if (one.socket.is_valid() && greet(one)) pending_.push_back(std::move(one));
  }
}

/// Reads what has come. False if the connection has ended.
bool Listener::read(PendingConnection& connection) const {
  std::vector<std::byte> more(bytes_ - connection.message.size());
  const ssize_t count = connection.socket.receive_some(more.data(), more.size());
  connection.message.insert(connection.message.end(), more.begin(),
                            more.begin() + std::max<ssize_t>(count, 0));
  return count >= 0;
}

}  // namespace baton::tcp
