// SPDX-License-Identifier: Apache-2.0
// Judges which ranks are late with equal work, and the clocks of their cores.
//
//   excess of a rank in a repeat = its mean time of the work / that of the fastest rank - 1
#pragma once

#include <vector>

#include "harness/doctor/findings.hpp"

namespace baton::doctor {

/// Findings about ranks that are late, with the causes.
std::vector<Finding> judge_ranks(const Readings& readings);

/// Findings about cores whose clocks are low, slowed by heat or limited by a setting.
std::vector<Finding> judge_clocks(const Readings& readings);

/// The ranks that are late, or that have to wait for their cores.
std::vector<int> late_ranks(const Readings& readings);

}  // namespace baton::doctor
