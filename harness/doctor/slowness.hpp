// SPDX-License-Identifier: Apache-2.0
// Judges which ranks are late with equal work, and the clocks of their cores.
//
//   excess of a rank in a repeat = its mean time of the work / that of the fastest rank - 1
#pragma once

#include <vector>

#include "harness/doctor/findings.hpp"

namespace baton::doctor {

/// Ranks that are late, and why.
std::vector<Finding> judge_ranks(const Readings& readings);

/// Clocks of cores that are below those that they are made for.
std::vector<Finding> judge_clocks(const Readings& readings);

/// The ranks that are late on their cores, or wait for them.
std::vector<int> late_ranks(const Readings& readings);

}  // namespace baton::doctor
