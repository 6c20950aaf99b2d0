// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/tcp/reception.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "collectives/executors/timing.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

constexpr double tick = 1;   // seconds from notice to notice
constexpr int patience = 5;  // notices without an answer that a seat may leave

Socket listen_at_one_of(int first) {
  for (int port = first; port < first + meeting_ports; ++port)
    if (Socket made = Socket::listen_at(port); made.is_valid()) return made;
  throw SystemError("rank 0 cannot listen at port " + std::to_string(first) + " or the " +
                    std::to_string(meeting_ports - 1) +
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

Reception::Reception(const Launcher& launcher)
    : Door(listen_at_one_of(launcher.port), sizeof(Hello)), launcher_(launcher), seats_(launcher.size) {
  if (!launcher.secret.empty()) return;
  for (const std::string& host : launcher.hosts)
    for (const std::string& address : addresses_of(host)) hosts_.insert(address);
}

Star Reception::receive_all(double seconds) {
  double next_tick = monotonic_seconds() + tick, quiet = 0;
  std::size_t fewest = missing().size();
  while (fewest > 0) {
    std::vector<int> seated;
    for (const Seat& seat : seats_)
      for (const Socket* one : {&seat.calls, &seat.beats})
        if (one->is_valid()) seated.push_back(one->descriptor());
    const double left = std::clamp(next_tick - monotonic_seconds(), 0.0, tick);
    std::vector<Guest> guests = listen(static_cast<int>(std::ceil(left * 1e3)), seated);
    for (Seat& seat : seats_) hear(seat);  // before a rank whose connection ended asks for its seat again
    for (Guest& guest : guests) answer(std::move(guest));
    if (const std::size_t count = missing().size(); count < fewest) fewest = count, quiet = 0;
    if (monotonic_seconds() < next_tick) continue;
    next_tick = monotonic_seconds() + tick;
    if ((quiet += tick) >= seconds) give_up(seconds);
    for (Seat& seat : seats_) say(seat, {Notice::Kind::wait});
  }
  return take_seats(seconds);
}

bool Reception::greet(Guest& guest) {
  guest.number = fresh_number();
  const Challenge challenge{.number = guest.number, .is_served = is_served(guest.socket) ? 1 : 0};
  return guest.socket.send_some(&challenge, sizeof challenge) == sizeof challenge && challenge.is_served == 1;
}

/// Where there is no secret, a guest's address must be one of the run's hosts.
bool Reception::is_served(const Socket& guest) const {
  if (!launcher_.secret.empty()) return true;
  const std::string address = guest.peer_address();
  return is_loopback(address) || address == guest.own_address() || hosts_.contains(address);
}

/// Gives a guest the seat that it asks for, or says why not.
void Reception::answer(Guest guest) {
  Hello hello;
  std::memcpy(&hello, guest.said.data(), sizeof hello);
  Verdict verdict{.answer = answer_to(hello, guest.number)};
  if (verdict.answer == Answer::come_in)
    verdict.seat = hello.purpose == Purpose::calls ? fresh_number() : hello.seat;
  verdict.proof = proof_of(verdict, hello, launcher_.secret);
  const bool is_told = guest.socket.send_some(&verdict, sizeof verdict) == sizeof verdict;
  if (verdict.answer != Answer::come_in || !is_told) return;
  Seat& seat = seats_[hello.rank];
  if (hello.purpose == Purpose::calls) {
    seat.calls = std::move(guest.socket);
    seat.number = verdict.seat;
  } else {
    seat.beats = std::move(guest.socket);
    say(seat, {Notice::Kind::wait});
  }
}

Answer Reception::answer_to(const Hello& hello, const Number& challenge) const {
  const bool is_sound = hello.rank > 0 && hello.rank < launcher_.size && hello.size == launcher_.size &&
                        (hello.purpose == Purpose::calls || hello.purpose == Purpose::beats);
  if (!is_sound || hello.run != launcher_.run) return Answer::other_run;
  if (hello.proof != proof_of(hello, challenge, launcher_.secret)) return Answer::other_secret;
  const Seat& seat = seats_[hello.rank];
  if (hello.purpose == Purpose::calls) return seat.calls.is_valid() ? Answer::taken : Answer::come_in;
  const bool is_its_own = seat.calls.is_valid() && seat.number == hello.seat && !seat.beats.is_valid();
  return is_its_own ? Answer::come_in : Answer::taken;
}

/// Counts the answers on a seat, and frees it if one of its connections has ended.
void Reception::hear(Seat& seat) const {
  if (!seat.calls.is_valid()) return;
  std::array<char, 64> said;
  const ssize_t answers = seat.calls.receive_some(said.data(), said.size());
  const bool has_ended =
      answers < 0 || (seat.beats.is_valid() && seat.beats.receive_some(said.data(), said.size()) != 0);
  if (has_ended || answers > seat.unanswered) {
    seat = Seat{};
  } else if (answers > 0) {
    seat.unanswered -= static_cast<int>(answers);
    seat.is_here = seat.beats.is_valid();
  }
}

/// Tells a rank something, or frees its seat if it has not answered for long.
void Reception::say(Seat& seat, const Notice& notice) {
  if (!seat.calls.is_valid()) return;
  if (seat.unanswered >= patience || seat.calls.send_some(&notice, sizeof notice) != sizeof notice)
    seat = Seat{};
  else
    ++seat.unanswered;
}

std::vector<int> Reception::missing() const {
  std::vector<int> found;
  for (int rank = 1; rank < launcher_.size; ++rank)
    if (!seats_[rank].is_here) found.push_back(rank);
  return found;
}

void Reception::give_up(double seconds) {
  for (Seat& seat : seats_) say(seat, {Notice::Kind::ranks_are_missing});
  throw SystemError(names_of(missing(), seats_.size()) + " did not come to " + launcher_.address + ":" +
                    std::to_string(launcher_.port) + ", where no rank came for " +
                    std::to_string(std::lround(seconds)) +
                    " s: were all started, and do they reach this host at that port?");
}

/// Tells every rank that all are there, with its address, and takes its connections. Ranks of rank
/// 0's own host may have come by a loopback address, which other hosts cannot use.
Star Reception::take_seats(double seconds) {
  Star star{.rank = 0, .size = launcher_.size, .address = "127.0.0.1", .calls = {}, .beats = {}};
  for (const Seat& seat : seats_)
    if (seat.calls.is_valid() && !is_loopback(seat.calls.peer_address()))
      star.address = seat.calls.own_address();
  for (Seat& seat : seats_) {
    if (!seat.calls.is_valid()) continue;
    const std::string seen = seat.calls.peer_address(), address = is_loopback(seen) ? star.address : seen;
    Notice notice{.kind = Notice::Kind::all_are_here};
    std::strncpy(notice.address.data(), address.c_str(), notice.address.size() - 1);
    say(seat, notice);
  }
  const Deadline deadline(seconds);
  for (int rank = 1; rank < launcher_.size; ++rank) {
    Seat& seat = seats_[rank];
    std::array<char, patience + 1> answers;  // that are due: calls follow them
    if (!seat.calls.is_valid() || !seat.calls.receive_all(answers.data(), seat.unanswered, deadline))
      throw SystemError("rank " + std::to_string(rank) + " of " + std::to_string(launcher_.size) +
                        " came and then said nothing: it has died or stopped, or is none of this run");
  }
  for (Seat& seat : seats_) {
    star.calls.push_back(std::move(seat.calls));
    star.beats.push_back(std::move(seat.beats));
  }
  return star;
}

}  // namespace baton
