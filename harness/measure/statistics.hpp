// SPDX-License-Identifier: Apache-2.0
// Statistics of the rounds of one case; docs/metrics.md says what each means.
#pragma once

#include <array>
#include <vector>

#include "collectives/executors/timing.hpp"

namespace baton {

using Interval = std::array<double, 2>;

/// Seconds of the rounds of a case, summed up.
struct Summary {
  double mean = 0;
  double median = 0;
  Interval ci95{};
  double min = 0;
  double p95 = 0;
  double max = 0;
};

/// Sums up at least one round.
Summary summarise(const std::vector<double>& seconds);

/// A distribution-free interval that covers the median with 95 % or more: the order statistics l and n+1-l
/// with the largest l for which Binomial(n, 1/2) is below l with at most 2.5 %. For n = 50 these are 18 and
/// 33 (96.7 %). The whole range below n = 6, where nothing covers as much.
Interval median_ci95(std::vector<double> values);

/// A ratio of medians and its interval.
struct Ratio {
  double value = 0;
  Interval ci95{};
};

/// median(a) / median(b), with the percentile bootstrap's 95 % interval (2000 resamples, fewer from 5000 rounds on; fixed seed).
Ratio ratio_of_medians(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace baton
