// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/tcp/arrival.hpp"

#include <poll.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectives/executors/tcp/handshake.hpp"
#include "collectives/executors/team.hpp"
#include "collectives/executors/timing.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

/// A connection that rank 0 has let in, and where.
struct Entry {
  Socket socket;
  Number seat{};
  std::string address;
  int port = 0;
};

/// A rank that tries to be let in at one port of one address, again and again, and never waits.
class Try {
 public:
  Try(std::string address, int port) : address_(std::move(address)), port_(port) {}

  /// Begins to connect if it is time for that. Returns the seconds until it is time again.
  double begin();
  pollfd polled() const {
    return {socket_.descriptor(), static_cast<short>(stage_ == Stage::connecting ? POLLOUT : POLLIN), 0};
  }
  /// Goes on after an event. True once rank 0 has let the rank in that says `hello`.
  bool go_on(const Hello& hello, const std::string& secret);
  /// The connection, after `go_on` has returned true.
  Entry entry() { return {std::move(socket_), verdict_.seat, address_, port_}; }
  /// Why rank 0 did not let the rank in; empty if it has not said so.
  const std::string& refusal() const { return refusal_; }

 private:
  enum class Stage { away, connecting, awaits_challenge, awaits_verdict };

  template <class T>
  bool has_received(T& into);
  void introduce(Hello hello, const std::string& secret);
  bool is_let_in(const std::string& secret);
  void leave(const std::string& why = {});

  std::string address_;
  int port_;
  Socket socket_;
  Stage stage_ = Stage::away;
  double next_ = 0, pause_ = 0.01;  // seconds: when to connect again, and how long to wait for that
  std::size_t received_ = 0;        // bytes of what is awaited
  Challenge challenge_;
  Hello hello_;
  Verdict verdict_;
  std::string refusal_;
};

double Try::begin() {
  constexpr double longest_pause = 0.25, longest_connecting = 2, far = 1;
  const double now = monotonic_seconds();
  if (stage_ == Stage::awaits_challenge || stage_ == Stage::awaits_verdict) return far;
  if (now < next_) return next_ - now;
  socket_ = Socket::begin_connecting(address_, port_);
  stage_ = socket_.is_valid() ? Stage::connecting : Stage::away;
  pause_ = std::min(2 * pause_, longest_pause);
  const double until_then = socket_.is_valid() ? longest_connecting : pause_;
  next_ = now + until_then;
  return until_then;
}

bool Try::go_on(const Hello& hello, const std::string& secret) {
  if (stage_ == Stage::connecting) {
    received_ = 0;
    if (socket_.end_connecting())
      stage_ = Stage::awaits_challenge;
    else
      leave();
  } else if (stage_ == Stage::awaits_challenge && has_received(challenge_)) {
    introduce(hello, secret);
  } else if (stage_ == Stage::awaits_verdict && has_received(verdict_)) {
    return is_let_in(secret);
  }
  return false;
}

/// Reads on. True if all of `into` has come; then the next message begins.
template <class T>
bool Try::has_received(T& into) {
  const ssize_t count =
      socket_.receive_some(reinterpret_cast<std::byte*>(&into) + received_, sizeof into - received_);
  if (count < 0) leave();
  if (count <= 0 || (received_ += count) < sizeof into) return false;
  received_ = 0;
  return true;
}

void Try::introduce(Hello hello, const std::string& secret) {
  if (challenge_.magic != Challenge::baton) return leave();
  if (challenge_.is_served == 0)
    return leave(
        "it serves the hosts that its launcher names, and this is none of them: set BATON_SECRET to the same "
        "words on all ranks");
  hello_ = hello;
  hello_.number = fresh_number();
  hello_.proof = proof_of(hello_, challenge_.number, secret);
  if (socket_.send_some(&hello_, sizeof hello_) != sizeof hello_) return leave();
  stage_ = Stage::awaits_verdict;
}

bool Try::is_let_in(const std::string& secret) {
  if (verdict_.answer == Answer::other_run) {
    leave();
  } else if (verdict_.answer == Answer::other_secret ||
             verdict_.proof != proof_of(verdict_, hello_, secret)) {
    leave("it has another secret: is BATON_SECRET the same on all ranks?");
  } else if (verdict_.answer != Answer::come_in) {
    leave("another process has come as this rank");
  }
  return stage_ == Stage::awaits_verdict;
}

void Try::leave(const std::string& why) {
  if (!why.empty()) refusal_ = why;
  socket_ = Socket();
  stage_ = Stage::away;
  next_ = monotonic_seconds() + pause_;
}

std::vector<Try> tries_at(const Launcher& launcher) {
  std::vector<Try> all;
  for (const std::string& address : addresses_of(launcher.address))
    for (int port = launcher.port; port < launcher.port + meeting_ports; ++port)
      all.emplace_back(address, port);
  return all;
}

/// Waits at all `tries` until one succeeds, or until one is refused if it `ends_refused`.
std::optional<Entry> introduce(std::span<Try> tries, const Hello& hello, const std::string& secret,
                               const Deadline& deadline, bool ends_refused = false) {
  std::vector<pollfd> polled;
  while (!deadline.is_over()) {
    double pause = 1;
    for (Try& one : tries) pause = std::min(pause, one.begin());
    polled.clear();
    for (const Try& one : tries) polled.push_back(one.polled());
    const int longest = std::min(deadline.milliseconds(), static_cast<int>(std::ceil(pause * 1e3)));
    if (poll(polled.data(), polled.size(), longest) <= 0) continue;
    for (std::size_t i = 0; i < tries.size(); ++i) {
      if (polled[i].revents != 0 && tries[i].go_on(hello, secret)) return tries[i].entry();
      if (ends_refused && !tries[i].refusal().empty()) return {};
    }
  }
  return {};
}

std::string place(const Launcher& launcher) { return launcher.address + ":" + std::to_string(launcher.port); }

/// The connection for calls. Throws MeetingError with the reason if there is none within so many
/// seconds.
Entry find_seat(const Launcher& launcher, const Hello& hello, double seconds, bool comes_back) {
  const Deadline deadline(seconds);
  std::vector<Try> tries;
  do {
    tries = tries_at(launcher);
    const Deadline next_look(1);  // whether the name is known by now
    if (auto found = introduce(tries, hello, launcher.secret, tries.empty() ? next_look : deadline))
      return std::move(*found);
  } while (tries.empty() && !deadline.is_over());
  const std::string within = " within " + std::to_string(std::lround(seconds)) + " s: ";
  const std::string rank = "rank " + std::to_string(launcher.rank);
  if (comes_back)
    throw MeetingError(rank + " lost rank 0 at " + place(launcher) + " before all ranks had come");
  for (const Try& one : tries)
    if (!one.refusal().empty())
      throw MeetingError(rank + " was not let in by rank 0 at " + place(launcher) + within + one.refusal());
  throw MeetingError(rank + " found no rank 0 at " + place(launcher) + within +
                     "was it started, and can this host reach it there?");
}

/// Answers the notices of rank 0 until the last one; none if rank 0 is lost.
std::optional<Notice> last_notice(const Socket& calls, double seconds) {
  Notice notice;
  const char answer = '!';
  while (calls.receive_all(&notice, sizeof notice, Deadline(seconds)) &&
         calls.send_all(&answer, sizeof answer))
    if (notice.kind != Notice::Kind::wait) return notice;
  return {};
}

}  // namespace

Star find_rank_0(const Launcher& launcher, double seconds) {
  constexpr double to_come_back = 5, later = 10;  // than its own time: rank 0 may be slow
  Star star{.rank = launcher.rank, .size = launcher.size, .address = {}, .calls = {}, .beats = {}};
  Hello hello{.run = launcher.run, .rank = launcher.rank, .size = launcher.size};
  std::optional<Notice> last;
  for (bool comes_back = false; !last; comes_back = true) {  // since rank 0 frees a paused rank's seat
    hello.purpose = Purpose::calls;
    Entry calls = find_seat(launcher, hello, comes_back ? to_come_back : seconds, comes_back);
    hello.purpose = Purpose::beats;
    hello.seat = calls.seat;
    Try same_port(calls.address, calls.port);
    auto beats = introduce({&same_port, 1}, hello, launcher.secret, Deadline(seconds), true);
    if (beats) last = last_notice(calls.socket, seconds + later);
    if (!last) continue;
    star.calls.push_back(std::move(calls.socket));
    star.beats.push_back(std::move(beats->socket));
  }
  if (last->kind == Notice::Kind::ranks_are_missing) throw SystemError("ranks are missing, as rank 0 says");
  star.address = last->address.data();
  return star;
}

}  // namespace baton
