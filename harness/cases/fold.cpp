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

Fold::Fold(std::int64_t rows, std::int64_t columns, bool wire_rounds, const MapForm& form)
    : columns_(columns),
      form_(form),
      prefix_(rows * columns, 0.0),
      errors_(wire_rounds ? prefix_.size() : 0) {}

void Fold::take(std::span<const float> map) {
  ++maps_;
  const auto decays = map.first(map.size() - prefix_.size()), state = map.last(prefix_.size());
  if (form_.kind == MapKind::affine) return take_matrices(decays, state);
  const std::size_t span = columns_ * form_.share;  // elements with one decay
  for (std::size_t i = 0, one = 0; i < prefix_.size(); ++one)
    for (const std::size_t end = i + span; i < end; ++i) prefix_[i] = decays[one] * prefix_[i] + state[i];
  for (std::size_t i = 0; i < errors_.size(); ++i) errors_[i].take(decays[i / span], state[i]);
}

namespace {

/// Multiplies each row of `rows` [rows, d] by the matrix of its head, which is transposed if `form`
/// says so. An element A of a matrix counts as `weight(A)`.
template <class Weight>
std::vector<double> through(std::span<const float> matrices, std::size_t d, const MapForm& form,
                            const std::vector<double>& rows, const Weight& weight) {
  std::vector<double> out(rows.size(), 0.0), weights(d * d);  // weights [from, to]
  for (std::size_t i = 0; i < rows.size() / d; ++i) {
    const float* matrix = matrices.data() + i / form.share * d * d;
    if (i % form.share == 0)
      for (std::size_t from = 0; from < d; ++from)
        for (std::size_t to = 0; to < d; ++to)
          weights[from * d + to] = weight(form.transposed ? matrix[from * d + to] : matrix[to * d + from]);
    for (std::size_t from = 0; from < d; ++from)
      for (std::size_t to = 0; to < d; ++to) out[i * d + to] += weights[from * d + to] * rows[i * d + from];
  }
  return out;
}

}  // namespace

void Fold::take_matrices(std::span<const float> matrices, std::span<const float> state) {
  prefix_ = through(matrices, columns_, form_, prefix_, [](double a) { return a; });
  for (std::size_t i = 0; i < prefix_.size(); ++i) prefix_[i] += state[i];
  if (errors_.empty()) return;
  constexpr double u = bf16_rms_roundoff * bf16_rms_roundoff;
  std::vector<double> sum, magnitude, variance;
  for (const WireError& error : errors_) {
    sum.push_back(error.sum);
    magnitude.push_back(error.magnitude);
    variance.push_back(error.variance + 2 * u * error.magnitude);
  }
  const auto square = [](double a) { return a * a; };
  sum = through(matrices, columns_, form_, sum, [](double a) { return std::abs(a); });
  magnitude = through(matrices, columns_, form_, magnitude, square);
  variance = through(matrices, columns_, form_, variance, square);
  for (std::size_t i = 0; i < errors_.size(); ++i)
    errors_[i] = {sum[i] + std::abs(state[i]), magnitude[i] + square(state[i]),
                  variance[i] + u * square(state[i])};
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
