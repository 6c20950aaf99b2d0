// SPDX-License-Identifier: Apache-2.0
// Rank 0 in a meeting: it waits until every rank has come, and answers whoever speaks.
//
//   Each rank has a seat of two connections, first for calls and then for beats. A seat is free
//   again once a connection has ended, or once its rank has left notices without an answer. A rank
//   is there when it has both connections and has answered a notice.
//
// Time is counted in seconds that rank 0 itself ran. A pause of rank 0 costs no rank its seat.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "collectives/executors/launcher.hpp"
#include "collectives/executors/tcp/door.hpp"
#include "collectives/executors/tcp/handshake.hpp"
#include "collectives/executors/tcp/star.hpp"

namespace baton {

class Reception : private Door {
 public:
  /// Listens at one of the run's ports. Throws SystemError if all are taken.
  explicit Reception(const Launcher& launcher);

  /// The connections to all ranks. Throws SystemError with the ranks that are missing once none has
  /// come for so many seconds.
  Star receive_all(double seconds);

 private:
  struct Seat {
    Socket calls, beats;
    Number number{};
    int unanswered = 0;  // notices
    bool is_here = false;
  };

  bool greet(Guest& guest) override;
  bool is_served(const Socket& guest) const;
  void answer(Guest guest);
  Answer answer_to(const Hello& hello, const Number& challenge) const;
  void hear(Seat& seat) const;
  static void say(Seat& seat, const Notice& notice);
  std::vector<int> missing() const;
  [[noreturn]] void give_up(double seconds);
  Star take_seats(double seconds);

  const Launcher& launcher_;
  std::set<std::string> hosts_;  // addresses of the run's hosts, where there is no secret
  std::vector<Seat> seats_;      // by rank; nobody sits at that of rank 0
};

}  // namespace baton
