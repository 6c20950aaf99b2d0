// SPDX-License-Identifier: Apache-2.0
// A rank other than 0 in a rendezvous: it looks for rank 0 at all ports where that may listen.
//
//   It connects to each of them, again and again where nobody is, and waits at all at once. A port
//   may belong to another run or program, and rank 0 may be slow: only an answer tells a silent
//   program from a paused rank 0. Of those that answer it takes the one that proves itself.
#pragma once

#include "collectives/executors/launcher.hpp"
#include "collectives/executors/tcp/handshake.hpp"

namespace baton::tcp {

/// Connects to rank 0 and waits with it until all ranks have joined. Throws MeetingError if rank 0
/// is not found within `seconds`, or is lost; SystemError if ranks are missing.
RankConnections join_rank_0(const Launcher& launcher, double seconds);

}  // namespace baton::tcp
