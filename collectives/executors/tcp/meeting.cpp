// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/tcp/meeting.hpp"

#include <chrono>
#include <thread>

#include "collectives/executors/tcp/arrival.hpp"
#include "collectives/executors/tcp/proof.hpp"
#include "collectives/executors/tcp/reception.hpp"
#include "collectives/executors/tcp/socket.hpp"
#include "collectives/executors/team.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton {

Star meet(const Launcher& launcher) {
  if (launcher.size == 1) return {};
  prove(launcher.secret, "");  // a host that cannot says so before the others wait for it
  if (has_no_address(launcher.address))
    throw MeetingError("rank " + std::to_string(launcher.rank) + " finds no address of '" + launcher.address +
                       "', where rank 0 should be: is MASTER_ADDR the name of its host, and known here?");
  const double seconds = launcher.meeting_seconds;
  return launcher.rank == 0 ? Reception(launcher).receive_all(seconds) : find_rank_0(launcher, seconds);
}

void throw_lost(int rank) {
  std::this_thread::sleep_for(std::chrono::seconds(3));
  throw SystemError("rank " + std::to_string(rank) + " has closed its connection: it has died or left");
}

}  // namespace baton
