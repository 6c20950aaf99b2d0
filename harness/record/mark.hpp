// SPDX-License-Identifier: Apache-2.0
// What a table says of the body that stood in for a schedule.
#pragma once

#include <string>

#include "collectives/executors/routine.hpp"

namespace baton {

/// The word behind an executor that ran the native of this name: " native", or " Python" for a
/// function of the user's. Nothing for "schedule" or an empty name.
inline std::string mark_of(const std::string& implementation) {
  if (implementation.empty() || implementation == "schedule") return "";
  return routines().find(implementation) == nullptr ? " native" : " Python";
}

}  // namespace baton
