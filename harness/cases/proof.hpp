// SPDX-License-Identifier: Apache-2.0
// The proof of all cases of a launch before any of them is timed: their schedules, their claims,
// and the scans in them, which run on words at every number of ranks.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "collectives/collective.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/cases/case.hpp"

namespace baton {

/// The most ranks that `prove_scan` runs a scan on.
inline constexpr int most_proved_ranks = 64;

/// Runs the exclusive scan `collective` of maps of kind `map` on words
/// (collectives/schedule/words.hpp) at every number of ranks from 2 to 64. Its settings are both
/// directions, 1, 4 and 16 blocks if it cuts its state, and nodes of several sizes if it looks at
/// nodes: all of them up to `all_settings_to` ranks, above one in turn. Takes 0.05 s for All-Scan
/// and 0.5 s where every rank sends to every other. Throws ScheduleError at the first wrong word.
/// Returns why it has no words, as a native has none; empty if it is proved.
Refusal prove_scan(const Collective& collective, int all_settings_to = 8, MapKind map = MapKind::diagonal);

/// The names of the exclusive scans in the schedules of `workload`, embedded ones included.
std::set<std::string> scans_of(const Workload& workload);

/// Builds and checks the schedules of every case that is measured, with its claim, and proves the
/// scans of all cases, each scan once. Returns for each case the text of its ScheduleError, or an
/// empty one. Cases with `auto_blocks` are built in 16 blocks. It moves no data and needs no other
/// process; every process of a launch gets the same texts.
std::vector<std::string> prove(std::span<const Case> all);

/// The number of blocks that a dry run counts.
int dry_blocks(const Case& bench_case);

/// Builds, checks and counts the schedules of every case and prints a line for each, and all their
/// steps if `with_schedules`. Counts of cases with `auto_blocks` are those of 16 blocks. Then
/// proves the scans of all cases and prints a line for each. A case that would not fit in memory
/// gets a line that says so. Throws ScheduleError; or UsageError if all that would take many
/// minutes.
void print_dry_run(const std::vector<Case>& all, bool with_schedules);

}  // namespace baton
