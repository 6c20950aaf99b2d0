// SPDX-License-Identifier: Apache-2.0
// How a program ends: exceptions become exit codes and one line of one rank.
#pragma once

#include <functional>

#include "harness/process/world.hpp"

namespace baton {

/// Returns the program's exit code: that of `body`, or that of its exception, which one rank
/// reports in one line. It is 2 for UsageError, 3 for ScheduleError, 141 if the reader of the
/// output has left, 1 for anything else.
int exit_code_of(const std::function<int()>& body);

/// Makes the world, runs `body` in it and ends it in good order. An error that all ranks share
/// passes through; any other error ends all processes.
void run_in_world(int* argc, char*** argv, const std::function<void(const World&)>& body);

}  // namespace baton
