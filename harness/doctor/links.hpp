// SPDX-License-Identifier: Apache-2.0
// Judges pairs of ranks by their messages.
//
//   reference of a pair: the lower quartile, in the same repeat, of the other pairs that are at
//                        least as far apart
//   slow:                its messages take longer than the reference by a limit, again and again
//   all pairs of a rank: one finding about that rank
#pragma once

#include <vector>

#include "harness/doctor/findings.hpp"

namespace baton::doctor {

/// Findings about pairs that are slower than the others, or than any pair of one host should be.
std::vector<Finding> judge_links(const Readings& readings);

}  // namespace baton::doctor
