// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/tcp/link.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "collectives/schedule/errors.hpp"

namespace baton::tcp {

void Link::begin_round(std::uint32_t round) {
  round_ = round;
  for (Incoming& one : incoming_) {
    one.is_posted = one.is_aside = one.is_complete = false;
  }
}

void Link::send(int step, std::span<const std::byte> from, int tag, std::vector<int>& done) {
  outgoing_.push_back({step, {round_, tag, from.size()}, from, 0});
  if (outgoing_.size() == 1) write_on(done);
}

void Link::receive(int step, std::span<std::byte> into, int tag, std::vector<int>& done) {
  Incoming& one = incoming(tag);
  one.is_posted = true;
  one.step = step;
  one.into = into;
  ++awaited_;
  if (one.is_complete) return deliver(one, done);
  if (is_closed_) throw_lost(peer_);
}

void Link::send_token() {
  std::vector<int> nothing;
  outgoing_.push_back({none, {round_, token_tag, 0}, {}, 0});
  write_on(nothing);
}

bool Link::take_token() {
  if (tokens_ == 0) {
    if (is_closed_) throw_lost(peer_);
    return false;
  }
  --tokens_;
  return true;
}

short Link::events() const {
  int events = outgoing_.empty() ? 0 : POLLOUT;
  if (!is_closed_ && !has_staged_frame()) events |= POLLIN;  // a staged one is of a later round
  return static_cast<short>(events);
}

void Link::go_on(std::vector<int>& done) {
  write_on(done);
  read_on(done);
  if (is_closed_ && awaited_ > 0) throw_lost(peer_);
}

Link::Incoming& Link::incoming(int tag) {
  if (static_cast<std::size_t>(tag) >= incoming_.size()) incoming_.resize(tag + 1);
  return incoming_[tag];
}

void Link::write_on(std::vector<int>& done) {
  while (!outgoing_.empty()) {
    Outgoing& first = outgoing_.front();
    const std::size_t of_head = std::min(first.sent, sizeof first.head), of_body = first.sent - of_head;
    std::array<iovec, 2> parts{
        iovec{reinterpret_cast<std::byte*>(&first.head) + of_head, sizeof first.head - of_head},
        iovec{const_cast<std::byte*>(first.body.data()) + of_body, first.body.size() - of_body}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t sent = sendmsg(socket_.descriptor(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (sent < 0) throw_lost(peer_);
    first.sent += static_cast<std::size_t>(sent);
    if (first.sent < sizeof first.head + first.body.size()) continue;
    if (first.step >= 0) done.push_back(first.step);
    outgoing_.pop_front();
  }
}

void Link::read_on(std::vector<int>& done) {
  while (!is_closed_) {
    if (!in_body_ && (!has_head() || !begin_body())) return;
    if (!in_body_) continue;  // a token
    if (!fill_body()) return;
    in_body_ = false;
    Incoming& one = incoming(head_.tag);
    one.is_complete = true;
    if (one.is_posted) deliver(one, done);
  }
}

/// Reads into the staging memory until it holds a header; false if that cannot be had now.
bool Link::has_head() {
  while (staged() < sizeof(Head)) {
    std::memmove(staging_.data(), staging_.data() + begin_, staged());
    end_ -= begin_;
    begin_ = 0;
    const ssize_t count = socket_.receive_some(staging_.data() + end_, staging_.size() - end_);
    if (count < 0) is_closed_ = true;
    if (count <= 0) return false;
    end_ += static_cast<std::size_t>(count);
  }
  std::memcpy(&head_, staging_.data() + begin_, sizeof head_);
  return true;
}

/// Finds the memory for the frame of `head_`, or counts a token. False if the frame is of a later
/// round.
bool Link::begin_body() {
  if (head_.tag == token_tag) {
    ++tokens_;
    begin_ += sizeof(Head);
    return true;
  }
  if (head_.round != round_) return false;
  if (head_.tag < 0 || head_.tag >= most_messages || head_.bytes > most_bytes)
    throw SystemError("rank " + std::to_string(peer_) + " sent message number " + std::to_string(head_.tag) +
                      " of " + std::to_string(head_.bytes) + " bytes, which no schedule has: its bytes are " +
                      "not those that it sent");
  Incoming& one = incoming(head_.tag);
  if (one.is_posted) require_size(one, head_.bytes);
  begin_ += sizeof(Head);
  one.is_aside = !one.is_posted;
  if (one.is_aside) one.aside.resize(head_.bytes);
  body_left_ = one.is_aside ? std::span(one.aside) : one.into;
  in_body_ = true;
  return true;
}

/// Fills the memory of the current frame; false if some bytes have not come yet.
bool Link::fill_body() {
  const std::size_t staged_part = std::min(staged(), body_left_.size());
  // An empty message that came early has no memory at all, which memcpy must not be given.
  std::ranges::copy(std::span(staging_).subspan(begin_, staged_part), body_left_.begin());
  begin_ += staged_part;
  body_left_ = body_left_.subspan(staged_part);
  while (!body_left_.empty()) {
    const ssize_t count = socket_.receive_some(body_left_.data(), body_left_.size());
    if (count < 0) is_closed_ = true;
    if (count <= 0) return false;
    body_left_ = body_left_.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

void Link::deliver(Incoming& one, std::vector<int>& done) {
  if (one.is_aside) {
    require_size(one, one.aside.size());
    std::ranges::copy(one.aside, one.into.begin());
  }
  --awaited_;
  if (one.step >= 0) done.push_back(one.step);
}

void Link::require_size(const Incoming& one, std::size_t bytes) const {
  if (one.into.size() == bytes) return;
  throw SystemError("rank " + std::to_string(peer_) + " sent a message of " + std::to_string(bytes) +
                    " bytes where one of " + std::to_string(one.into.size()) + " was expected");
}

}  // namespace baton::tcp
