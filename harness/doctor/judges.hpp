// SPDX-License-Identifier: Apache-2.0
// From readings to findings: all judges, each a function of the readings alone.
#pragma once

#include <vector>

#include "harness/doctor/findings.hpp"

namespace baton::doctor {

/// Findings about the build and the system, such as a missing executor or a slow clock.
std::vector<Finding> judge_build(const Readings& readings);

/// The findings of all judges, problems first.
std::vector<Finding> findings_of(const Readings& readings);

/// True if there is no problem among the findings.
bool is_fit(const std::vector<Finding>& findings);

}  // namespace baton::doctor
