// SPDX-License-Identifier: Apache-2.0
// Schedules as text, for people.
#pragma once

#include <string>
#include <vector>

#include "collectives/schedule/schedule.hpp"

namespace baton {

/// One line a step: number, verb, slices, peer, the steps it waits for and the line of the
/// algorithm, as in
///   3  send     carry[0:4096) to rank 2               after 2      all_scan.cpp:34
std::string text(const Schedule& schedule);

/// Slices of the schedule's buffers, as in "carry[0:4096), own[64:128)".
std::string text(const Schedule& schedule, const std::vector<Slice>& slices);

}  // namespace baton
