// SPDX-License-Identifier: Apache-2.0
// Means, medians and their intervals.
#include "harness/measure/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace baton {
namespace {

/// P(Binomial(n, 1/2) = k).
double binomial(int n, int k) {
  return std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) - n * std::log(2.0));
}

/// The smallest value that at least `share` of the sorted values do not exceed.
double quantile(const std::vector<double>& sorted, double share) {
  const auto position = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(position, 1) - 1];
}

double resampled_median(const std::vector<double>& values, std::mt19937_64& random) {
  std::uniform_int_distribution<std::size_t> pick(0, values.size() - 1);
  std::vector<double> sample(values.size());
  for (double& value : sample) value = values[pick(random)];
  return median(std::move(sample));
}

}  // namespace

Interval median_ci95(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const int n = static_cast<int>(values.size());
  int l = 1;
  for (double below = binomial(n, 0) + binomial(n, 1); below <= 0.025; below += binomial(n, l)) ++l;
  return {values[l - 1], values[n - l]};
}

Summary summarise(const std::vector<double>& seconds) {
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  return {.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size()),
          .median = median(sorted),
          .ci95 = median_ci95(sorted),
          .min = sorted.front(),
          .p95 = quantile(sorted, 0.95),
          .max = sorted.back()};
}

Ratio ratio_of_medians(const std::vector<double>& a, const std::vector<double>& b) {
  // Fewer where there are so many rounds that the interval is narrow and the time long.
  const std::size_t resamples = std::clamp<std::size_t>(20'000'000 / (a.size() + b.size()), 200, 2000);
  std::mt19937_64 random(1);
  std::vector<double> ratios(resamples);
  for (double& ratio : ratios) ratio = resampled_median(a, random) / resampled_median(b, random);
  std::sort(ratios.begin(), ratios.end());
  return {median(a) / median(b), {quantile(ratios, 0.025), quantile(ratios, 0.975)}};
}

}  // namespace baton
