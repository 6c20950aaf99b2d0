// SPDX-License-Identifier: Apache-2.0
// How the processes of a run find one another without MPI.
//
//   rank 0:  listens at a port that all know, until every rank has come or none comes any more
//   others:  connect to it, twice, again and again until it lets them in or the time is up
//   rank 0:  tells each that all are there, and the address of its host
//
// Where the run has a secret, both sides prove that they know it. Where it has none, rank 0 serves
// the addresses of the run's hosts alone. Where a port is taken, the next one serves.
#pragma once

#include "collectives/executors/launcher.hpp"
#include "collectives/executors/tcp/star.hpp"

namespace baton {

/// Meets the other processes of the run. Rank 0 waits until none has come for
/// BATON_MEETING_SECONDS, 60 if it is not set, and the others look for it so long. Throws
/// SystemError on rank 0 and the ranks that came if some did not; MeetingError on a rank that found
/// no rank 0.
Star meet(const Launcher& launcher);

/// Throws SystemError for `rank`, whose connection has closed. It waits 3 s first, since a watchdog
/// that runs says more and ends this process meanwhile.
[[noreturn]] void throw_lost(int rank);

}  // namespace baton
