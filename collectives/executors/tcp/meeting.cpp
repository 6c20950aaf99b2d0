// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/tcp/meeting.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "collectives/executors/team.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

constexpr int ports = 16;                          // tried one after the other
constexpr std::uint64_t magic = 0x31304e4f544142;  // "BATON01"

enum class Purpose : std::int32_t { calls, beats };

struct Hello {
  std::uint64_t magic = 0;
  std::uint64_t run = 0;
  std::int32_t rank = 0;
  std::int32_t size = 0;
  Purpose purpose = Purpose::calls;
  std::int32_t unused = 0;
};

/// The last message of rank 0 in a meeting: an address of the rank's host, or no text if ranks are
/// missing.
struct Welcome {
  std::array<char, 64> address{};
};

std::string place(const Launcher& launcher) { return launcher.address + ":" + std::to_string(launcher.port); }

std::string in_words(double seconds) { return " within " + std::to_string(std::lround(seconds)) + " s"; }

/// The text that names `ranks`: "ranks 1, 2 and 5 more of 8", or "rank 1 of 2".
std::string names_of(const std::vector<int>& ranks, int size) {
  constexpr std::size_t most = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(ranks.size(), most); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  if (ranks.size() > most) text += " and " + std::to_string(ranks.size() - most) + " more";
  return text + " of " + std::to_string(size);
}

Socket listen_at_one_of(int first) {
  for (int port = first; port < first + ports; ++port)
    if (Socket door = Socket::listen_at(port); door.is_valid()) return door;
  throw SystemError("rank 0 cannot listen at port " + std::to_string(first) + " or the " +
                    std::to_string(ports - 1) + " after it: set BATON_PORT to another one on all ranks");
}

/// Lets a rank in on rank 0, or sends it away.
void let_in(Socket guest, const Launcher& launcher, Star& star) {
  Hello hello;
  if (!guest.receive_all(&hello, sizeof hello, Deadline(1))) return;
  char fits = hello.magic == magic && hello.run == launcher.run && hello.size == star.size &&
              hello.rank > 0 && hello.rank < star.size;
  auto& seats = hello.purpose == Purpose::calls ? star.calls : star.beats;
  if (fits != 0 && seats[hello.rank].is_valid()) fits = 0;
  guest.send_all(&fits, sizeof fits);
  if (fits != 0) seats[hello.rank] = std::move(guest);
}

std::vector<int> missing_in(const Star& star) {
  std::vector<int> missing;
  for (int rank = 1; rank < star.size; ++rank)
    if (!star.calls[rank].is_valid() || !star.beats[rank].is_valid()) missing.push_back(rank);
  return missing;
}

/// Tells every rank its address. Ranks of rank 0's own host may have come by a loopback address,
/// which other hosts cannot use.
void tell_addresses(Star& star) {
  star.address = "127.0.0.1";
  for (int rank = 1; rank < star.size; ++rank)
    if (!is_loopback(star.calls[rank].peer_address())) star.address = star.calls[rank].own_address();
  for (int rank = 1; rank < star.size; ++rank) {
    const std::string seen = star.calls[rank].peer_address(),
                      address = is_loopback(seen) ? star.address : seen;
    Welcome welcome;
    std::strncpy(welcome.address.data(), address.c_str(), welcome.address.size() - 1);
    star.calls[rank].send_all(&welcome, sizeof welcome);
  }
}

Star receive_all_ranks(const Launcher& launcher, double seconds) {
  Star star{.rank = 0, .size = launcher.size, .address = {}, .calls = {}, .beats = {}};
  star.calls.resize(star.size);
  star.beats.resize(star.size);
  const Socket door = listen_at_one_of(launcher.port);
  const Deadline deadline(seconds);
  while (!missing_in(star).empty() && !deadline.is_over())
    if (Socket guest = door.accept(deadline); guest.is_valid()) let_in(std::move(guest), launcher, star);
  const std::vector<int> missing = missing_in(star);
  if (missing.empty()) {
    tell_addresses(star);
    return star;
  }
  const Welcome none;
  for (const Socket& call : star.calls)
    if (call.is_valid()) call.send_all(&none, sizeof none);
  throw SystemError(names_of(missing, star.size) + " did not come to " + place(launcher) + in_words(seconds) +
                    ": were all started, and do they reach this host at that port?");
}

/// Connects a rank to rank 0 for `purpose`. The socket is invalid if rank 0 is not behind `port`.
Socket introduce(const Launcher& launcher, int port, Purpose purpose, const Deadline& deadline) {
  Socket guest = Socket::connect_to(launcher.address, port, deadline);
  const Hello hello{magic, launcher.run, launcher.rank, launcher.size, purpose};
  char fits = 0;
  const bool is_in = guest.is_valid() && guest.send_all(&hello, sizeof hello) &&
                     guest.receive_all(&fits, sizeof fits, Deadline(2)) && fits == 1;
  return is_in ? std::move(guest) : Socket();
}

Star find_rank_0(const Launcher& launcher, double seconds) {
  Star star{.rank = launcher.rank, .size = launcher.size, .address = {}, .calls = {}, .beats = {}};
  const Deadline deadline(seconds);
  for (int tries = 0; !deadline.is_over(); ++tries) {
    const int port = launcher.port + tries % ports;
    Socket calls = introduce(launcher, port, Purpose::calls, deadline);
    if (calls.is_valid()) {
      star.calls.push_back(std::move(calls));
      star.beats.push_back(introduce(launcher, port, Purpose::beats, deadline));
      break;
    }
    if (tries % ports == ports - 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  if (star.calls.empty() || !star.beats[0].is_valid())
    throw MeetingError("rank " + std::to_string(star.rank) + " found no rank 0 at " + place(launcher) +
                       in_words(seconds) + ": was it started, and can this host reach it there?");
  Welcome welcome;
  constexpr double later = 10;  // than this rank's own time: rank 0 may have begun to wait after it
  if (!star.calls[0].receive_all(&welcome, sizeof welcome, Deadline(seconds + later)))
    throw MeetingError("rank " + std::to_string(star.rank) + " lost rank 0 at " + place(launcher) +
                       " before all ranks had come");
  star.address = welcome.address.data();
  if (star.address.empty()) throw SystemError("ranks are missing, as rank 0 says");
  return star;
}

}  // namespace

Star meet(const Launcher& launcher) {
  if (launcher.size == 1) return {};
  const double seconds = seconds_to_meet();
  return launcher.rank == 0 ? receive_all_ranks(launcher, seconds) : find_rank_0(launcher, seconds);
}

void throw_lost(int rank) {
  std::this_thread::sleep_for(std::chrono::seconds(3));
  throw SystemError("rank " + std::to_string(rank) + " has closed its connection: it has died or left");
}

}  // namespace baton
