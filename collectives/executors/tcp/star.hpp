// SPDX-License-Identifier: Apache-2.0
// The connections of a run without MPI.
#pragma once

#include <string>
#include <vector>

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

}  // namespace baton
