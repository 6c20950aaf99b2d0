// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/tcp/rendezvous_client.hpp"

#include <poll.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "collectives/executors/team.hpp"
#include "collectives/executors/timing.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton::tcp {
namespace {

/// Connects to one port of one address, again and again, until rank 0 accepts. It never waits.
class Attempt {
 public:
  Attempt(std::string address, int port) : address_(std::move(address)), port_(port) {}

  /// Begins to connect if it is time for that. Returns the seconds until it is time again.
  double begin();
  pollfd polled() const {
    return {socket_.descriptor(), static_cast<short>(state_ == State::connecting ? POLLOUT : POLLIN), 0};
  }
  /// Goes on after an event. True once rank 0 has accepted the rank that sends `hello`.
  bool go_on(const Hello& hello, const std::string& secret);
  /// Why rank 0 did not accept the rank; empty if it has not said so.
  const std::string& refusal() const { return refusal_; }

  Socket& socket() { return socket_; }
  /// The slot of the rank, once it is accepted.
  const Nonce& slot() const { return reply_.slot; }
  /// One more connection to the same port.
  Attempt another() const { return {address_, port_}; }

 private:
  enum class State { idle, connecting, awaits_challenge, awaits_reply };

  template <class T>
  bool has_received(T& into);
  void introduce(const Hello& hello, const std::string& secret);
  bool is_accepted(const std::string& secret);
  void close(const std::string& why = {});

  std::string address_;
  int port_;
  Socket socket_;
  State state_ = State::idle;
  double next_ = 0, pause_ = 0.01;  // seconds: when to connect again, and how long to wait for that
  std::size_t received_ = 0;        // bytes of what is awaited
  Challenge challenge_;
  Hello hello_;
  Reply reply_;
  std::string refusal_;
};

double Attempt::begin() {
  constexpr double longest_pause = 0.25, longest_connecting = 2, far = 1;
  const double now = monotonic_seconds();
  if (state_ == State::awaits_challenge || state_ == State::awaits_reply) return far;
  if (now < next_) return next_ - now;
  socket_ = Socket::begin_connecting(address_, port_);
  state_ = socket_.is_valid() ? State::connecting : State::idle;
  pause_ = std::min(2 * pause_, longest_pause);
  const double until_then = socket_.is_valid() ? longest_connecting : pause_;
  next_ = now + until_then;
  return until_then;
}

bool Attempt::go_on(const Hello& hello, const std::string& secret) {
  if (state_ == State::connecting) {
    received_ = 0;
    if (socket_.end_connecting())
      state_ = State::awaits_challenge;
    else
      close();
  } else if (state_ == State::awaits_challenge && has_received(challenge_)) {
    introduce(hello, secret);
  } else if (state_ == State::awaits_reply && has_received(reply_)) {
    return is_accepted(secret);
  }
  return false;
}

/// Reads on. True if all of `into` has come; then the next message begins.
template <class T>
bool Attempt::has_received(T& into) {
  const ssize_t count =
      socket_.receive_some(reinterpret_cast<std::byte*>(&into) + received_, sizeof into - received_);
  if (count < 0) close();
  if (count <= 0 || (received_ += count) < sizeof into) return false;
  received_ = 0;
  return true;
}

void Attempt::introduce(const Hello& hello, const std::string& secret) {
  if (challenge_.magic != Challenge::baton) return close();
  if (challenge_.is_served == 0)
    return close(
        "it serves the hosts that its launcher names, and this is none of them: set BATON_SECRET to the same "
        "words on all ranks");
  hello_ = hello;
  hello_.nonce = fresh_nonce();
  hello_.proof = proof_of(hello_, challenge_.nonce, secret);
  if (socket_.send_some(&hello_, sizeof hello_) != sizeof hello_) return close();
  state_ = State::awaits_reply;
}

bool Attempt::is_accepted(const std::string& secret) {
  if (reply_.status == Status::wrong_run)
    close();
  else if (reply_.status == Status::wrong_secret || reply_.proof != proof_of(reply_, hello_, secret))
    close("it has another secret: is BATON_SECRET the same on all ranks?");
  else if (reply_.status != Status::accepted)
    close("another process has come as this rank");
  return socket_.is_valid();
}

void Attempt::close(const std::string& why) {
  if (!why.empty()) refusal_ = why;
  socket_ = Socket();
  state_ = State::idle;
  next_ = monotonic_seconds() + pause_;
}

/// Goes on with all attempts until one is accepted. Gives up at the deadline, or at the first
/// refusal if it `ends_refused`.
std::optional<Attempt> first_accepted(std::span<Attempt> attempts, const Hello& hello,
                                      const std::string& secret, const Deadline& deadline,
                                      bool ends_refused = false) {
  std::vector<pollfd> polled;
  while (!deadline.is_over()) {
    double pause = 1;
    for (Attempt& one : attempts) pause = std::min(pause, one.begin());
    polled.clear();
    for (const Attempt& one : attempts) polled.push_back(one.polled());
    const int longest = std::min(deadline.milliseconds(), static_cast<int>(std::ceil(pause * 1e3)));
    if (poll(polled.data(), polled.size(), longest) <= 0) continue;
    for (std::size_t i = 0; i < attempts.size(); ++i) {
      if (polled[i].revents != 0 && attempts[i].go_on(hello, secret)) return std::move(attempts[i]);
      if (ends_refused && !attempts[i].refusal().empty()) return {};
    }
  }
  return {};
}

/// An attempt at each port of each address of rank 0; none while its name is not known.
std::vector<Attempt> attempts_at(const Launcher& launcher) {
  std::vector<Attempt> all;
  for (const std::string& address : addresses_of(launcher.address))
    for (int port = launcher.port; port < launcher.port + rendezvous_ports; ++port)
      all.emplace_back(address, port);
  return all;
}

/// The control channel. Throws MeetingError with the reason if there is none within `seconds`.
Attempt open_control(const Launcher& launcher, const Hello& hello, double seconds, bool comes_back) {
  const Deadline deadline(seconds);
  std::vector<Attempt> attempts;
  do {
    attempts = attempts_at(launcher);
    const Deadline next_look(1);  // whether the name is known by now
    if (auto found =
            first_accepted(attempts, hello, launcher.secret, attempts.empty() ? next_look : deadline))
      return std::move(*found);
  } while (attempts.empty() && !deadline.is_over());
  const std::string rank = "rank " + std::to_string(launcher.rank),
                    place = launcher.address + ":" + std::to_string(launcher.port),
                    within = " within " + std::to_string(std::lround(seconds)) + " s: ";
  if (comes_back) throw MeetingError(rank + " lost rank 0 at " + place + " before all ranks had come");
  for (const Attempt& one : attempts)
    if (!one.refusal().empty())
      throw MeetingError(rank + " was not let in by rank 0 at " + place + within + one.refusal());
  throw MeetingError(rank + " found no rank 0 at " + place + within +
                     "was it started, and can this host reach it there?");
}

/// Answers the messages of rank 0 until the last one; none if rank 0 is lost.
std::optional<JoinStatus> last_status(const Socket& control, double seconds) {
  JoinStatus message;
  const char answer = '!';
  while (control.receive_all(&message, sizeof message, Deadline(seconds)) &&
         control.send_all(&answer, sizeof answer))
    if (message.kind != JoinStatus::Kind::waiting) return message;
  return {};
}

}  // namespace

RankConnections join_rank_0(const Launcher& launcher, double seconds) {
  constexpr double to_come_back = 5, later = 10;       // than its own time: rank 0 may be slow
  for (bool comes_back = false;; comes_back = true) {  // since rank 0 frees a paused rank's slot
    Hello hello{.run = launcher.run, .rank = launcher.rank, .size = launcher.size};
    Attempt control = open_control(launcher, hello, comes_back ? to_come_back : seconds, comes_back);
    hello.channel = Channel::heartbeat;
    hello.slot = control.slot();
    Attempt same_port = control.another();
    auto heartbeat = first_accepted({&same_port, 1}, hello, launcher.secret, Deadline(seconds), true);
    const auto last = heartbeat ? last_status(control.socket(), seconds + later) : std::nullopt;
    if (!last) continue;
    if (last->kind == JoinStatus::Kind::ranks_missing) throw SystemError("ranks are missing, as rank 0 says");
    RankConnections all{.rank = launcher.rank, .size = launcher.size, .address = last->address.data()};
    all.control.push_back(std::move(control.socket()));
    all.heartbeat.push_back(std::move(heartbeat->socket()));
    return all;
  }
}

}  // namespace baton::tcp
