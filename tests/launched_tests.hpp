// SPDX-License-Identifier: Apache-2.0
// Tests that run on an executor, and launch the ranks that it needs by themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "collectives/executors/executor.hpp"
#include "harness/launch.hpp"

namespace baton {

/// The `main` of a program "NAME EXECUTOR [GoogleTest's flags]": launches four ranks where the executor has a process a
/// rank, lets `add_tests` register tests, runs them on all ranks and prints on rank 0. Fails where no test ran.
int launched_tests(int argc, char** argv,
                   const std::function<void(const World&, const std::string&)>& add_tests);

/// A seed that is another one in every run and the same on all ranks; BATON_SEED overrides it.
std::uint64_t held_out_seed();

}  // namespace baton
