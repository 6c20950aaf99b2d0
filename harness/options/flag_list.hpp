// SPDX-License-Identifier: Apache-2.0
// The flags of a bench as JSON, by which ./run refuses wrong arguments before it builds anything.
#pragma once

#include <string>

#include "harness/options/flags.hpp"

namespace baton {

/// The flags and --help of the bench called `program`, a line for each flag and for each line of
/// --help.
std::string as_json(const std::string& program, const Flags& flags);

}  // namespace baton
