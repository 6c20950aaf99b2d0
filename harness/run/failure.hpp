// SPDX-License-Identifier: Apache-2.0
// The row of a case that ended its launch.
#pragma once

#include <string>

#include "harness/process/launch.hpp"
#include "harness/record/facts.hpp"

namespace baton {

/// The failure of the case called `name`, which a launch had begun when it ended: why the launch
/// ended, the rank and the step that the report of it names, and where another rank was.
Failure failure_of(const LaunchEnd& end, const std::string& name);

}  // namespace baton
