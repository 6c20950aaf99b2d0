// SPDX-License-Identifier: Apache-2.0
// Which cases of a run compete, and how they stand.
#pragma once

#include <string>
#include <vector>

#include "harness/record/record.hpp"

namespace baton {

class Outcomes;

/// The indices of the cases of each contest, in their order.
std::vector<std::vector<int>> contests_of(const std::vector<Case>& cases);

/// Adds the times that `outcomes` holds of so many cases.
void add_outcomes(Standings& standings, const Outcomes& outcomes, int cases);

/// The mode of a layer; empty for a collective.
std::string mode_of(const Record& record);

/// The rows of a contest, of layers mode by mode: first those that run as they were published, then
/// those that wait for the exchange, then those without one. Within a mode the fastest is at the
/// top, and rows without times at the end. The best of the contest is its first timed row. Cases
/// without an outcome are left out.
std::vector<Record> ranked_rows(const std::vector<int>& contest, const std::vector<Case>& cases,
                                const Outcomes& outcomes, const Standings& standings);

}  // namespace baton
