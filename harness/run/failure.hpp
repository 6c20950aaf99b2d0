// SPDX-License-Identifier: Apache-2.0
// What the reports of a launch's processes say of the case that ended it.
#pragma once

#include <string>

#include "harness/process/launch.hpp"
#include "harness/record/facts.hpp"

namespace baton {

/// The failure of the case called `name`, which a launch had begun when it ended: the first report
/// of it, the rank and the step that this names, and where another rank was.
Failure failure_of(const LaunchEnd& end, const std::string& name);

}  // namespace baton
