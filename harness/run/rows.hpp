// SPDX-License-Identifier: Apache-2.0
// Which cases of a run compete, and their rows.
#pragma once

#include <string>
#include <vector>

#include "harness/record/row.hpp"

namespace baton {

class Comparisons;
class Results;

/// The indices of the cases of each contest, in their order.
std::vector<std::vector<int>> contests_of(const std::vector<Case>& cases);

/// Sets how a case compares, in `launch` and over all launches so far.
void add_comparisons(Result& result, const Comparisons& comparisons, int launch, int index);

/// The mode of a layer; empty for a collective.
std::string mode_of(const Row& row);

/// The rows of a contest, of layers mode by mode: first those that run as they were published, then
/// those that wait for the exchange, then those without one. Within a mode the fastest is at the
/// top, and rows without times at the end. The fastest of the contest is its first timed row. Cases
/// without a result are left out.
std::vector<Row> ranked_rows(const std::vector<int>& contest, const std::vector<Case>& cases,
                             const Results& results, const Comparisons& comparisons);

}  // namespace baton
