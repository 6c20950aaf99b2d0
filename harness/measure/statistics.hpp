// SPDX-License-Identifier: Apache-2.0
// Statistics of rounds and of launches; docs/metrics.md explains each.
#pragma once

#include <array>
#include <vector>

namespace baton {

using Interval = std::array<double, 2>;

/// Statistics of the rounds of a case, in seconds.
struct Summary {
  double mean = 0;
  double median = 0;
  Interval ci95{};
  double min = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
  double max = 0;
};

/// Summarises at least one round.
Summary summarise(const std::vector<double>& seconds);

/// A distribution-free interval that covers the median with at least 95 %: the order statistics l
/// and n+1-l with the largest l for which Binomial(n, 1/2) is below l with at most 2.5 %. For n =
/// 50 these are 18 and 33 (96.7 %). Below n = 6 no interval covers as much, and the whole range is
/// returned.
Interval median_ci95(std::vector<double> values);

/// A ratio of medians and its interval.
struct Ratio {
  double value = 0;
  Interval ci95{};
};

/// median(a) / median(b) with the 95 % interval of the percentile bootstrap: 2000 resamples, fewer
/// from 5000 rounds on, with a fixed seed. The interval reaches to the ratio where it would end
/// before.
Ratio ratio_of_medians(const std::vector<double>& a, const std::vector<double>& b);

/// The least standard deviation of logarithms between launches: timers tick and times are rounded,
/// so launches that agree exactly are no more alike than this. plots/baton/estimates.py has the
/// same.
inline constexpr double least_spread = 1e-3;

/// The geometric mean of positive numbers, one from each launch, at least one: the estimate of
/// whatever several launches measured.
double geometric_mean(const std::vector<double>& values);

/// The same of at least two launches, with its 95 % interval: Student's t on the logarithms, which
/// spread by at least `least`. Numbers that are the same at every run, as simulated ones, have 0.
Ratio over_launches(const std::vector<double>& values, double least = least_spread);

/// The summary of one case in at least two launches, each with the seconds of its rounds. The
/// median and its interval are `over_launches` of the launches' medians; the rest is of all rounds
/// together.
Summary summarise_launches(const std::vector<std::vector<double>>& seconds, double least = least_spread);

}  // namespace baton
