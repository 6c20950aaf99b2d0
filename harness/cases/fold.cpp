// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/fold.hpp"

#include <algorithm>
#include <cmath>

namespace baton {

double scan_tolerance(double roundoff, int before) {
  if (roundoff <= 0 || before < 1) return 0;
  constexpr double f32_roundoff = 1.0 / (1 << 24);
  // The values of a tree that merges the maps; each is rounded at most once on its way.
  const int values = 2 * before - 1;
  return std::expm1(values * (std::log1p(roundoff) + 2 * std::log1p(f32_roundoff)));
}

double most_rms(std::int64_t count) {
  return 4 + 8 / std::sqrt(static_cast<double>(std::max<std::int64_t>(count, 1)));
}

Fold::Fold(std::int64_t rows, std::int64_t columns, bool wire_rounds)
    : columns_(columns), prefix_(rows * columns, 0.0), errors_(wire_rounds ? prefix_.size() : 0) {}

void Fold::take(std::span<const float> map) {
  ++maps_;
  const std::size_t rows = prefix_.size() / columns_;
  for (std::size_t i = 0, row = 0; row < rows; ++row)
    for (const std::size_t end = i + columns_; i < end; ++i)
      prefix_[i] = map[row] * prefix_[i] + map[rows + i];
  for (std::size_t i = 0; i < errors_.size(); ++i) errors_[i].take(map[i / columns_], map[rows + i]);
}

ExpectedPrefix Fold::prefix() const {
  constexpr double most_of_an_element = 12;  // times its root mean square
  const double worst = scan_tolerance(bf16_roundoff, maps_);
  ExpectedPrefix expected;
  expected.values.assign(prefix_.begin(), prefix_.end());
  double variance = 0;
  for (const WireError& error : errors_) {
    expected.limits.push_back(
        static_cast<float>(std::min(most_of_an_element * std::sqrt(error.of_prefix()), worst * error.sum)));
    variance += error.of_prefix();
  }
  expected.most_error = most_rms(static_cast<std::int64_t>(errors_.size())) * std::sqrt(variance);
  return expected;
}

}  // namespace baton
