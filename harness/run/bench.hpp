// SPDX-License-Identifier: Apache-2.0
// The main function of the benches.
#pragma once

#include <optional>

namespace baton {

struct Options;

/// Parses the command line of a bench. Returns nothing if the answer was --help, --version, --list
/// or --schema, which has been printed. Throws UsageError with one line if an argument is wrong.
using ParseOptions = std::optional<Options> (*)(int, char**);

/// The main function of a bench: parses the command line, starts the launches and collects what
/// they leave, or, as a process of a launch, runs its cases. Returns the exit code.
int bench_main(int argc, char** argv, ParseOptions parse);

}  // namespace baton
