// SPDX-License-Identifier: Apache-2.0
#include "harness/record/prediction_errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/record/row.hpp"

namespace baton {
namespace {

std::string error_line(const std::string& name, const std::vector<double>& log_ratios) {
  double sum = 0, error = 0, worst = 0;
  for (const double ratio : log_ratios) {
    sum += ratio;
    error += std::abs(ratio);
    worst = std::max(worst, std::abs(ratio));
  }
  const double count = static_cast<double>(log_ratios.size());
  return fmt::format("# {:<26} {:>4} {:>10.2f} {:>8.0f} {:>8.0f}\n", name, log_ratios.size(),
                     std::exp(sum / count), 100 * (std::exp(error / count) - 1), 100 * (std::exp(worst) - 1));
}

}  // namespace

void PredictionErrors::add(const Row& row) {
  const auto predicted = row.result.known<double>("predicted_seconds");
  if (row.is_timed() && predicted)
    log_ratios_[row.bench_case.workload->name()].push_back(std::log(*predicted / row.median()));
}

std::string PredictionErrors::table() const {
  if (log_ratios_.empty()) return {};
  std::string text = fmt::format("# {:<26} {:>4} {:>10} {:>8} {:>8}\n", "predicted against measured", "rows",
                                 "ratio", "error %", "worst %");
  std::vector<double> all;
  for (const auto& [name, log_ratios] : log_ratios_) {
    text += error_line(name, log_ratios);
    all.insert(all.end(), log_ratios.begin(), log_ratios.end());
  }
  return text + error_line("all", all);
}

}  // namespace baton
