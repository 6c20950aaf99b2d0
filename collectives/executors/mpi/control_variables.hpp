// SPDX-License-Identifier: Apache-2.0
// What the MPI library has in force, by its own tools interface.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace baton {

/// Control variables that move times, and those that parameter files of Open MPI set, with their
/// values, wherever they come from: a file, the environment, a command line, or the library. Needs
/// initialised MPI. Empty values are left out.
std::vector<std::pair<std::string, std::string>> control_variables();

}  // namespace baton
