// SPDX-License-Identifier: Apache-2.0
// Work that may fail on one rank alone, before all ranks meet again.
#pragma once

#include <string>

#include "collectives/executors/team.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton {

/// Runs `work` on all members of a team. Returns the first text, by rank, of a SystemError that it
/// threw; all members get it, so that all go on or none. Within `work` no member may wait for
/// another, which may have failed.
template <class Work>
std::string failure_of(const Team& team, const Work& work) {
  std::string failed;
  try {
    work();
  } catch (const SystemError& error) {
    failed = error.what();
  }
  return team.first(failed);
}

}  // namespace baton
