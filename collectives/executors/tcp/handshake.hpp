// SPDX-License-Identifier: Apache-2.0
// The messages by which rank 0 and another rank prove who they are when they connect.
//
//   rank 0:  Challenge   a fresh number, and whether it serves the other's address
//   other:   Hello       who it is and what the connection is for, a fresh number, its proof
//   rank 0:  Verdict     whether it is let in, the number of its seat, the proof of rank 0
//
// A proof is made of all that was said before under the run's secret. Both numbers are fresh, so no
// proof serves twice. Then on connections for calls, until all ranks are there:
//
//   rank 0:  Notice      once a second, and one at the end
//   other:   a byte      for each
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "collectives/executors/tcp/proof.hpp"

namespace baton {

/// The ports at which rank 0 may listen, from Launcher::port on.
constexpr int meeting_ports = 16;

enum class Purpose : std::int32_t { calls, beats };

struct Challenge {
  static constexpr std::uint64_t baton = 0x32304e4f544142;  // "BATON02"
  std::uint64_t magic = baton;
  Number number{};
  std::int32_t is_served = 1;
  std::int32_t unused = 0;
};

struct Hello {
  std::uint64_t run = 0;  // Launcher::run, which tells runs apart and proves nothing
  std::int32_t rank = 0;
  std::int32_t size = 0;
  Purpose purpose = Purpose::calls;
  std::int32_t unused = 0;
  Number number{};
  Number seat{};  // for beats: that of the calls of this rank
  Proof proof{};
};

enum class Answer : std::int32_t { come_in, other_run, other_secret, taken };

struct Verdict {
  Answer answer = Answer::come_in;
  std::int32_t unused = 0;
  Number seat{};
  Proof proof{};
};

struct Notice {
  enum class Kind : std::int32_t { wait, all_are_here, ranks_are_missing };
  Kind kind = Kind::wait;
  std::array<char, 64> address{};  // of the rank's host, once all are there
};

/// The proof of the rank that says `hello`.
Proof proof_of(const Hello& hello, const Number& challenge, const std::string& secret);
/// The proof of rank 0, which answers `hello` by `verdict`.
Proof proof_of(const Verdict& verdict, const Hello& hello, const std::string& secret);

}  // namespace baton
