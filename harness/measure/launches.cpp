// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>

#include "collectives/executors/timing.hpp"
#include "harness/measure/samples.hpp"

namespace baton {
namespace {

/// The 97.5 % quantile of Student's t: a table, and for more degrees of freedom the expansion in
/// their reciprocal, which is right to 1e-3 there.
double t_quantile(int degrees) {
  constexpr std::array table{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
  if (degrees <= static_cast<int>(table.size())) return table[static_cast<std::size_t>(degrees) - 1];
  constexpr double z = 1.959964;
  const double n = degrees;
  return z + (z * z * z + z) / (4 * n) + (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * n * n);
}

}  // namespace

Ratio over_launches(const std::vector<double>& values) {
  const double count = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += std::log(value);
  const double mean = sum / count;
  for (const double value : values) squares += (std::log(value) - mean) * (std::log(value) - mean);
  const int degrees = static_cast<int>(values.size()) - 1;
  const double half = t_quantile(degrees) * std::sqrt(squares / degrees / count);
  return {std::exp(mean), {std::exp(mean - half), std::exp(mean + half)}};
}

Summary summarise_launches(const std::vector<std::vector<double>>& seconds) {
  std::vector<double> all, medians;
  for (const auto& launch : seconds) {
    all.insert(all.end(), launch.begin(), launch.end());
    medians.push_back(median(launch));
  }
  Summary summary = summarise(all);
  const Ratio launches = over_launches(medians);
  summary.median = launches.value;
  summary.ci95 = launches.ci95;
  return summary;
}

}  // namespace baton
