// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/tcp/door.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

namespace baton {

std::vector<Guest> Door::listen(int milliseconds, std::span<const int> others) {
  polled_.assign(1, {port_.descriptor(), POLLIN, 0});
  for (const Guest& guest : guests_) polled_.push_back({guest.socket.descriptor(), POLLIN, 0});
  for (const int other : others) polled_.push_back({other, POLLIN, 0});
  std::vector<Guest> have_spoken;
  if (poll(polled_.data(), polled_.size(), milliseconds) <= 0) return have_spoken;
  std::size_t place = 1;
  for (auto guest = guests_.begin(); guest != guests_.end(); ++place) {
    const bool stays = polled_[place].revents == 0 || hear(*guest);
    if (stays && guest->said.size() == bytes_) have_spoken.push_back(std::move(*guest));
    const bool leaves = !stays || !guest->socket.is_valid();
    guest = leaves ? guests_.erase(guest) : std::next(guest);
  }
  if (polled_[0].revents != 0) let_in();
  return have_spoken;
}

/// Lets in all who are outside. If there are too many, those who have been silent for longest
/// leave: a rank among them comes again.
void Door::let_in() {
  constexpr std::size_t most = 256;
  while (true) {
    Guest guest{port_.accept()};
    const bool is_full =
        guest.socket.is_valid() ? guests_.size() == most : errno == EMFILE || errno == ENFILE;
    if (!guest.socket.is_valid() && (!is_full || guests_.empty())) return;
    if (is_full) guests_.pop_front();
    if (guest.socket.is_valid() && greet(guest)) guests_.push_back(std::move(guest));
  }
}

/// Reads what a guest says. False if the guest has left.
bool Door::hear(Guest& guest) {
  std::vector<std::byte> more(bytes_ - guest.said.size());
  const ssize_t count = guest.socket.receive_some(more.data(), more.size());
  guest.said.insert(guest.said.end(), more.begin(), more.begin() + std::max<ssize_t>(count, 0));
  return count >= 0;
}

}  // namespace baton
