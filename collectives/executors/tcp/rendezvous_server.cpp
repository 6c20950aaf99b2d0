// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/tcp/rendezvous_server.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "collectives/executors/timing.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton::tcp {
namespace {

constexpr double tick = 1;          // seconds from message to message
constexpr int most_unanswered = 5;  // messages before a slot is freed

Socket listen_at_one_of(int first) {
  for (int port = first; port < first + rendezvous_ports; ++port)
    if (Socket made = Socket::listen_at(port); made.is_valid()) return made;
  throw SystemError("rank 0 cannot listen at port " + std::to_string(first) + " or the " +
                    std::to_string(rendezvous_ports - 1) +
                    " after it: set BATON_PORT to another one on all ranks");
}

/// The text that names `ranks`: "ranks 1, 2 and 5 more of 8", or "rank 1 of 2".
std::string names_of(const std::vector<int>& ranks, std::size_t size) {
  constexpr std::size_t most = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(ranks.size(), most); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  if (ranks.size() > most) text += " and " + std::to_string(ranks.size() - most) + " more";
  return text + " of " + std::to_string(size);
}

}  // namespace

RendezvousServer::RendezvousServer(const Launcher& launcher)
    : Listener(listen_at_one_of(launcher.port), sizeof(Hello)), launcher_(launcher), slots_(launcher.size) {
  if (!launcher.secret.empty()) return;
  for (const std::string& host : launcher.hosts)
    for (const std::string& address : addresses_of(host)) hosts_.insert(address);
}

RankConnections RendezvousServer::accept_all(double seconds) {
  double next_tick = monotonic_seconds() + tick, quiet = 0;
  std::size_t fewest = missing().size();
  while (fewest > 0) {
    std::vector<int> open;
    for (const RankSlot& slot : slots_)
      for (const Socket* one : {&slot.control, &slot.heartbeat})
        if (one->is_valid()) open.push_back(one->descriptor());
    const double left = std::clamp(next_tick - monotonic_seconds(), 0.0, tick);
    std::vector<PendingConnection> complete = poll_messages(static_cast<int>(std::ceil(left * 1e3)), open);
    for (RankSlot& slot : slots_) read_answers(slot);  // before a rank that was cut off asks for its slot
    for (PendingConnection& one : complete) answer(std::move(one));
    if (const std::size_t count = missing().size(); count < fewest) fewest = count, quiet = 0;
    if (monotonic_seconds() < next_tick) continue;
    next_tick = monotonic_seconds() + tick;
    if ((quiet += tick) >= seconds) give_up(seconds);
    for (RankSlot& slot : slots_) send(slot, {JoinStatus::Kind::waiting});
  }
  return take_connections(seconds);
}

bool RendezvousServer::greet(PendingConnection& connection) {
  connection.challenge = fresh_nonce();
  const Challenge challenge{.nonce = connection.challenge, .is_served = is_served(connection.socket) ? 1 : 0};
  return connection.socket.send_some(&challenge, sizeof challenge) == sizeof challenge &&
         challenge.is_served == 1;
}

bool RendezvousServer::is_served(const Socket& connection) const {
  if (!launcher_.secret.empty()) return true;
  const std::string address = connection.peer_address();
  return is_loopback(address) || address == connection.own_address() || hosts_.contains(address);
}

/// Gives the connection the slot that it asks for, or says why not.
void RendezvousServer::answer(PendingConnection connection) {
  Hello hello;
  std::memcpy(&hello, connection.message.data(), sizeof hello);
  Reply reply{.status = status_of(hello, connection.challenge)};
  const bool is_control = hello.channel == Channel::control;
  if (reply.status == Status::accepted) reply.slot = is_control ? fresh_nonce() : hello.slot;
  reply.proof = proof_of(reply, hello, launcher_.secret);
  const bool is_sent = connection.socket.send_some(&reply, sizeof reply) == sizeof reply;
  if (reply.status != Status::accepted || !is_sent) return;
  RankSlot& slot = slots_[hello.rank];
  (is_control ? slot.control : slot.heartbeat) = std::move(connection.socket);
  slot.number = reply.slot;
  if (!is_control) send(slot, {JoinStatus::Kind::waiting});
}

Status RendezvousServer::status_of(const Hello& hello, const Nonce& challenge) const {
  const bool is_sound = hello.rank > 0 && hello.rank < launcher_.size && hello.size == launcher_.size &&
                        (hello.channel == Channel::control || hello.channel == Channel::heartbeat);
  if (!is_sound || hello.run != launcher_.run) return Status::wrong_run;
  if (hello.proof != proof_of(hello, challenge, launcher_.secret)) return Status::wrong_secret;
  const RankSlot& slot = slots_[hello.rank];
  const bool is_own = slot.control.is_valid() && slot.number == hello.slot && !slot.heartbeat.is_valid();
  const bool is_free = hello.channel == Channel::control ? !slot.control.is_valid() : is_own;
  return is_free ? Status::accepted : Status::rank_taken;
}

/// Counts the answers of a rank, and frees its slot if one of its connections has ended.
void RendezvousServer::read_answers(RankSlot& slot) {
  if (!slot.control.is_valid()) return;
  std::array<char, 64> said;
  const ssize_t answers = slot.control.receive_some(said.data(), said.size());
  const bool has_ended = answers < 0 || (slot.heartbeat.is_valid() &&
                                         slot.heartbeat.receive_some(said.data(), said.size()) != 0);
  if (has_ended || answers > slot.unanswered) {
    slot = RankSlot{};
  } else if (answers > 0) {
    slot.unanswered -= static_cast<int>(answers);
    slot.has_joined = slot.heartbeat.is_valid();
  }
}

/// Sends a message to a rank, or frees its slot if it has not answered for long.
void RendezvousServer::send(RankSlot& slot, const JoinStatus& message) {
  if (!slot.control.is_valid()) return;
  if (slot.unanswered >= most_unanswered ||
      slot.control.send_some(&message, sizeof message) != sizeof message)
    slot = RankSlot{};
  else
    ++slot.unanswered;
}

std::vector<int> RendezvousServer::missing() const {
  std::vector<int> found;
  for (int rank = 1; rank < launcher_.size; ++rank)
    if (!slots_[rank].has_joined) found.push_back(rank);
  return found;
}

void RendezvousServer::give_up(double seconds) {
  for (RankSlot& slot : slots_) send(slot, {JoinStatus::Kind::ranks_missing});
  throw SystemError(names_of(missing(), slots_.size()) + " did not come to " + launcher_.address + ":" +
                    std::to_string(launcher_.port) + ", where no rank came for " +
                    std::to_string(std::lround(seconds)) +
                    " s: were all started, and do they reach this host at that port?");
}

/// The address by which ranks of other hosts reached this one, or the loopback address if none did.
std::string RendezvousServer::own_address() const {
  for (const RankSlot& slot : slots_)
    if (slot.control.is_valid() && !is_loopback(slot.control.peer_address()))
      return slot.control.own_address();
  return "127.0.0.1";
}

/// Tells every rank that all have joined, with its address, and takes its connections. Ranks of
/// rank 0's own host may have come by a loopback address, which other hosts cannot use.
RankConnections RendezvousServer::take_connections(double seconds) {
  RankConnections all{.rank = 0, .size = launcher_.size, .address = own_address()};
  for (RankSlot& slot : slots_) {
    if (!slot.control.is_valid()) continue;
    const std::string seen = slot.control.peer_address(), address = is_loopback(seen) ? all.address : seen;
    JoinStatus message{.kind = JoinStatus::Kind::complete};
    std::strncpy(message.address.data(), address.c_str(), message.address.size() - 1);
    send(slot, message);
  }
  const Deadline deadline(seconds);
  for (int rank = 1; rank < launcher_.size; ++rank) {
    RankSlot& slot = slots_[rank];
    std::array<char, most_unanswered + 1> answers;  // that are due: calls follow them
    if (!slot.control.is_valid() || !slot.control.receive_all(answers.data(), slot.unanswered, deadline))
      throw SystemError("rank " + std::to_string(rank) + " of " + std::to_string(launcher_.size) +
                        " came and then said nothing: it has died or stopped, or is none of this run");
  }
  for (RankSlot& slot : slots_) {
    all.control.push_back(std::move(slot.control));
    all.heartbeat.push_back(std::move(slot.heartbeat));
  }
  return all;
}

}  // namespace baton::tcp
