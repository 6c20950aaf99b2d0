// SPDX-License-Identifier: Apache-2.0
// How narrow the intervals over launches are, by which --stop-at ends a run, and how many launches
// there may be.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/cases/case.hpp"

namespace baton {

class Comparisons;
struct Options;

/// The least number of launches whose intervals --stop-at believes.
inline constexpr int least_launches = 3;
/// The most launches that --stop-at and --for add: more would hardly narrow the intervals.
inline constexpr int most_launches = 20;

/// The launches that may run if there is time for them; with --stop-at, --launches is their most.
int most_asked(const Options& options);

/// The widest interval over launches of the cases of a run.
struct Widest {
  /// The index of the case.
  int index = 0;
  /// Half of the interval, in percent of the time.
  double percent = 0;
};

/// The widest interval of those cases that have times; nothing before the second launch.
std::optional<Widest> widest_interval(const Comparisons& comparisons, int cases);

/// True if the intervals after `launch` launches are narrow enough for --stop-at `percent`; if no
/// case has a time, since no launch would give one.
bool is_narrow(const std::optional<Widest>& widest, int launch, double percent);

/// A line that says how --stop-at `percent` ended: after how many launches, and if it gave up,
/// which interval is too wide.
std::string end_of_stop_at(const std::optional<Widest>& widest, const std::vector<Case>& cases, int launches,
                           double percent);

}  // namespace baton
