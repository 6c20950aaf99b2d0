// SPDX-License-Identifier: Apache-2.0
// Judges who else uses the cores of the ranks.
#pragma once

#include <vector>

#include "doctor/findings.hpp"

namespace baton::doctor {

/// Others on the cores of ranks: processes, control groups, a hypervisor.
std::vector<Finding> judge_load(const Readings& readings);

}  // namespace baton::doctor
