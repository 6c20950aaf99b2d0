// SPDX-License-Identifier: Apache-2.0
// The five steps that every bench takes.
#pragma once

#include <functional>
#include <optional>

#include "harness/options/options.hpp"
#include "harness/report/columns.hpp"

namespace baton {

using ParseOptions = std::function<std::optional<Options>(int, char**)>;

/// Parses the command line, launches the processes, registers the cases, runs them and finishes; the exit code.
int bench_main(int argc, char** argv, const ParseOptions& parse, const Table& table);

}  // namespace baton
