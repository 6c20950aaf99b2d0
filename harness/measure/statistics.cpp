// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <random>
#include <utility>

#include "collectives/executors/timing.hpp"

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

/// The 97.5 % quantile of Student's t: a table, and for more degrees of freedom the expansion in
/// their reciprocal, which is right to 1e-3 there.
double t_quantile(int degrees) {
  constexpr std::array table{12.70620, 4.30265, 3.18245, 2.77645, 2.57058,
                             2.44691,  2.36462, 2.30600, 2.26216, 2.22814};
  if (degrees <= static_cast<int>(table.size())) return table[static_cast<std::size_t>(degrees) - 1];
  constexpr double z = 1.959964;
  const double n = degrees;
  return z + (z * z * z + z) / (4 * n) + (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * n * n);
}

double mean_logarithm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return sum / static_cast<double>(values.size());
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
          .p50 = quantile(sorted, 0.50),
          .p95 = quantile(sorted, 0.95),
          .p99 = quantile(sorted, 0.99),
          .max = sorted.back()};
}

Ratio ratio_of_medians(const std::vector<double>& a, const std::vector<double>& b) {
  // Fewer for many rounds, when the interval is narrow and resampling takes long.
  const std::size_t resamples = std::clamp<std::size_t>(20'000'000 / (a.size() + b.size()), 200, 2000);
  std::mt19937_64 random(1);
  std::vector<double> ratios(resamples);
  for (double& ratio : ratios) ratio = resampled_median(a, random) / resampled_median(b, random);
  std::sort(ratios.begin(), ratios.end());
  const double ratio = median(a) / median(b);
  return {ratio, {std::min(quantile(ratios, 0.025), ratio), std::max(quantile(ratios, 0.975), ratio)}};
}

double geometric_mean(const std::vector<double>& values) {
  return values.size() == 1 ? values.front() : std::exp(mean_logarithm(values));
}

Ratio over_launches(const std::vector<double>& values, double least) {
  const double mean = mean_logarithm(values);
  double squares = 0;
  for (const double value : values) squares += (std::log(value) - mean) * (std::log(value) - mean);
  const int degrees = static_cast<int>(values.size()) - 1;
  const double spread = std::max(std::sqrt(squares / degrees), least);
  const double half = t_quantile(degrees) * spread / std::sqrt(static_cast<double>(values.size()));
  return {std::exp(mean), {std::exp(mean - half), std::exp(mean + half)}};
}

Summary summarise_launches(const std::vector<std::vector<double>>& seconds, double least) {
  std::vector<double> all, medians;
  for (const auto& launch : seconds) {
    all.insert(all.end(), launch.begin(), launch.end());
    medians.push_back(median(launch));
  }
  Summary summary = summarise(all);
  const Ratio launches = over_launches(medians, least);
  summary.median = launches.value;
  summary.ci95 = launches.ci95;
  return summary;
}

}  // namespace baton
