// SPDX-License-Identifier: Apache-2.0
// Judges accelerators by equal work on each and by what they tell of themselves.
#pragma once

#include <vector>

#include "harness/doctor/findings.hpp"

namespace baton::doctor {

/// Findings about accelerators that are late, throttled or unlike the others.
std::vector<Finding> judge_devices(const Readings& readings);

}  // namespace baton::doctor
