// SPDX-License-Identifier: Apache-2.0
// The ranges of numbers in a topology file: wide enough for any machine, and narrow enough that no
// sum or product overflows.
#pragma once

#include "collectives/simulator/topology/json.hpp"

namespace baton::ranges {

inline constexpr int most_ranks = 1 << 20;
inline constexpr Range counts{1, most_ranks};
inline constexpr Range seconds{0, 3600};
inline constexpr Range rates{1, 1e18};
inline constexpr Range bytes{0, 1e15};

}  // namespace baton::ranges
