// SPDX-License-Identifier: Apache-2.0
// Statistics over launches of one case. Rounds of one launch share its placement, its memory and
// its connections, so that launches differ by more than their rounds do: the launch is the unit.
#pragma once

#include <vector>

#include "harness/measure/samples.hpp"

namespace baton {

/// The estimate and the 95 % interval of positive numbers, one from each launch: their geometric
/// mean, and Student's t on their logarithms. At least two.
Ratio over_launches(const std::vector<double>& values);

/// One case in at least two launches, each with the seconds of its rounds. The median and its
/// interval are those of the launches' medians; the rest is of all rounds together.
Summary summarise_launches(const std::vector<std::vector<double>>& seconds);

}  // namespace baton
