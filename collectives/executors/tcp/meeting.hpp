// SPDX-License-Identifier: Apache-2.0
// How the processes of a run find one another without MPI.
//
//   rank 0:  listens at a port that all know, until every rank has come or the time is up
//   others:  connect to it, twice, again and again until it listens or the time is up
//   rank 0:  tells each that all are there, and the address of its host
//
// A rank introduces itself with the number of its run, so that two runs of one host, or another
// program at the port, are not taken for this run. Where a port is taken, the next one serves.
#pragma once

#include <string>
#include <vector>

#include "collectives/executors/launcher.hpp"
#include "collectives/executors/tcp/socket.hpp"

namespace baton {

/// The connections of one process after the meeting: rank 0 has two to every other rank, the others
/// have two to rank 0.
struct Star {
  int rank = 0;
  int size = 1;
  /// The address by which the other hosts reach this one.
  std::string address;
  /// Connections for the calls of teams: by rank on rank 0, one entry elsewhere.
  std::vector<Socket> calls;
  /// Connections for beats: by rank on rank 0, one entry elsewhere.
  std::vector<Socket> beats;

  /// The connection for calls to rank `to`. A rank that is not 0 reaches rank 0 alone.
  const Socket& call(int to) const { return calls[rank == 0 ? to : 0]; }
};

/// Meets the other processes of the run within BATON_MEETING_SECONDS, 60 if it is not set. Throws
/// SystemError on rank 0 and the ranks that came if some did not; MeetingError on a rank that found
/// no rank 0.
Star meet(const Launcher& launcher);

/// Throws SystemError for `rank`, whose connection has closed. It waits 3 s first, since a watchdog
/// that runs says more and ends this process meanwhile.
[[noreturn]] void throw_lost(int rank);

}  // namespace baton
