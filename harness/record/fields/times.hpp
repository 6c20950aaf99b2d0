// SPDX-License-Identifier: Apache-2.0
// What a case took: its rounds, their figures, and the figures over launches.
#pragma once

#include <array>

#include "harness/record/fields/field.hpp"

namespace baton::schema::part {

using enum Role;
using enum Type;
using enum Written;

// key, role, type, written, unit, title, flag, absent, help, is named
inline constexpr std::array of_times = std::to_array<Field>({
    {"seconds", result, list, always, "seconds", "", "", "", "One value a round: the maximum over ranks."},
    {"rank_seconds", result, list, if_any, "seconds", "", "", "[]", "A list of rounds for each rank."},
    {"timed_seconds", result, real, always, "seconds", "", "", "null",
     "The time of the slowest process that went into the warm-up and the timed rounds."},
    {"first_seconds", result, real, or_null, "seconds", "first", "", "null", "The first warm-up round."},
    {"mean_seconds", result, real, always, "seconds", "mean", "", "", "The arithmetic mean of the rounds."},
    {"median_seconds", result, real, always, "seconds", "median", "", "",
     "The median of the rounds, of which ratios are made."},
    {"ci95_seconds", result, interval, always, "seconds", "95 % interval", "", "",
     "The distribution-free interval of the median, within this launch."},
    {"min_seconds", result, real, always, "seconds", "min", "", "", "The least time of a round."},
    {"p50_seconds", result, real, always, "seconds", "p50", "", "null",
     "The least time that half of the rounds do not exceed."},
    {"p95_seconds", result, real, always, "seconds", "p95", "", "",
     "The least time that 95 % of the rounds do not exceed."},
    {"p99_seconds", result, real, always, "seconds", "p99", "", "null",
     "The least time that 99 % of the rounds do not exceed."},
    {"max_seconds", result, real, always, "seconds", "max", "", "", "The largest time of a round."},
    {"rounds_as_last", result, list, if_any, "", "last", "", "[]",
     "For each rank the number of rounds in which it was the slowest."},
    {"algbw_bytes_per_second", result, real, if_any, "bytes per second", "algbw", "", "null",
     "The payload over the median."},
    {"busbw_bytes_per_second", result, real, if_any, "bytes per second", "busbw", "", "null",
     "The bytes that must cross a rank's port over the median."},
    {"ratio", result, real, or_null, "", "ratio", "", "null",
     "The median over that of the baseline at the same point."},
    {"hidden", result, real, or_null, "", "hidden", "", "null",
     "The share of a layer's exchange that local work hid."},
    {"exposed_seconds", result, real, if_any, "seconds", "exposed", "", "null",
     "What a model's exchange costs: the line full less the line split."},
    {"ratio_ci95", result, interval, or_null, "", "", "", "null",
     "The interval of the ratio, within this launch."},
    {"ratio_to", result, text, if_any, "", "ratio to", "", "\"\"",
     "The row of the baseline that the ratio refers to, with its mode and its blocks if it has any."},
    {"over_launches", result, object, if_any, "", "", "", "null",
     "The figures over all launches so far, from the second launch on."},
    {"over_launches.launches", result, whole, always, "", "", "", "", "The number of launches."},
    {"over_launches.median_seconds", result, real, always, "seconds", "", "", "",
     "The geometric mean of their medians."},
    {"over_launches.ci95_seconds", result, interval, always, "seconds", "", "", "",
     "Its interval over launches."},
    {"over_launches.ratio", result, real, or_null, "", "", "", "null",
     "The ratio to the baseline, formed launch by launch."},
    {"over_launches.ratio_ci95", result, interval, or_null, "", "", "", "null",
     "Its interval over launches."},
    {"over_launches.ratio_to", result, text, if_any, "", "", "", "\"\"",
     "The row of the baseline that this ratio refers to."},
    {"over_launches.hidden", result, real, or_null, "", "", "", "null",
     "The hidden share, of the modes' times over all launches."},
});

}  // namespace baton::schema::part
