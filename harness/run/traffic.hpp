// SPDX-License-Identifier: Apache-2.0
// What a case costs before it runs: its blocks, and its traffic, counted and compared with its claim.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/cases/case.hpp"
#include "harness/measure/link.hpp"

namespace baton {

/// What `question` runs with where it asks for so many blocks: no more than there are rows to cut between.
int possible_blocks(const Case& question, int asked);

/// The number of blocks that `question` runs with over `link`.
int blocks_of(const Case& question, const Link& link);

/// "schedule", or the name of the native that the schedules call.
std::string implementation_of(const std::vector<Schedule>& schedules);

/// What a case costs: counted from its schedules, or claimed where a native does the work.
std::optional<Claim> traffic_of(const Case& question, int blocks, const std::vector<Schedule>& schedules);

/// Throws ScheduleError if the author of `question` claims something else than was counted.
void require_claim(const Case& question, int blocks, const Claim& counted);

}  // namespace baton
