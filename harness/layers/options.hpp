// SPDX-License-Identifier: Apache-2.0
// The command line of operator_bench.
#pragma once

#include <optional>

namespace baton {

struct Options;

/// Parses the command line of operator_bench, as ParseOptions says.
std::optional<Options> parse_operator_options(int argc, char** argv);

}  // namespace baton
