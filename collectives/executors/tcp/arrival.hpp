// SPDX-License-Identifier: Apache-2.0
// Another rank in a meeting: it looks for rank 0 at all ports where that may listen.
//
//   It connects to each of them, again and again where nobody is, and waits at all at once. A port
//   may belong to another run or program, and rank 0 may be slow: only an answer tells a silent
//   program from a paused rank 0. Of those that answer it takes the one that proves itself.
#pragma once

#include "collectives/executors/launcher.hpp"
#include "collectives/executors/tcp/star.hpp"

namespace baton {

/// Finds rank 0 and waits with it until all ranks have come. Throws MeetingError if rank 0 is not
/// found within so many seconds, or is lost; SystemError if ranks are missing.
Star find_rank_0(const Launcher& launcher, double seconds);

}  // namespace baton
