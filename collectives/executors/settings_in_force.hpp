// SPDX-License-Identifier: Apache-2.0
// What a library of messages says of itself, for records of a run.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace baton {

/// Returns names and values of what is in force in a run that MPI has joined. The part of the build
/// with MPI sets it; it is empty without.
inline std::function<std::vector<std::pair<std::string, std::string>>()>& settings_in_force() {
  static std::function<std::vector<std::pair<std::string, std::string>>()> function;
  return function;
}

}  // namespace baton
