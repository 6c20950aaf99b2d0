// SPDX-License-Identifier: Apache-2.0
// The error of a rank that waited in vain for another one.
#pragma once

#include <string>

#include "collectives/schedule/errors.hpp"

namespace baton {

struct StuckError : SystemError {
  StuckError(const std::string& text, int in_step) : SystemError(text), step(in_step) {}
  /// The step of its schedule in which it waited; -1 if that is unknown.
  int step;
};

}  // namespace baton
