// SPDX-License-Identifier: Apache-2.0
// From exceptions to one line and an exit code.
#pragma once

#include <functional>

#include "harness/process/launch.hpp"

namespace baton {

/// Runs `body`. On an exception prints one line, from one rank, and returns its exit code: 2 UsageError,
/// 3 ScheduleError, 4 WrongResult, 1 anything else.
int guarded(const std::function<void()>& body);

/// Makes the world, runs `body` in it and ends it in good order. An error that all ranks share passes
/// through; one that this rank may be alone with ends all of them.
void run_in_world(int* argc, char*** argv, const std::function<void(const World&)>& body);

}  // namespace baton
