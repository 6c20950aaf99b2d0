// SPDX-License-Identifier: Apache-2.0
// What a sweep would run, proved and counted, without running it.
#pragma once

#include "harness/options/options.hpp"

namespace baton {

/// Builds, checks and counts the schedules of every case and prints a line each, or all their steps. Where
/// blocks are left to the model, which needs a machine, counts are those of 16 blocks. Throws ScheduleError.
void print_dry_run(const Options& options);

}  // namespace baton
