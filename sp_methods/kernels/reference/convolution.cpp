// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/reference/convolution.hpp"

#include <cmath>
#include <functional>

#include "sp_methods/kernels/conv.hpp"

namespace baton {
namespace {

double logistic(double z) { return 1 / (1 + std::exp(-z)); }

/// Calls body(t, row, weight) with the indices in z, x and w of every term of every sum.
void for_each_term(const ReferenceConvolution& of,
                   const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& body) {
  for (std::int64_t t = 0; t < of.tokens(); ++t)
    for (std::int64_t i = 0; i < of.taps; ++i) {
      const std::int64_t row = of.history + t - of.taps + 1 + i;
      for (std::int64_t c = 0; c < of.width && row >= 0; ++c)
        body(t * of.width + c, row * of.width + c, c * of.weights() + i);
    }
}

/// The place of the bias of element i of the tokens.
std::size_t bias_of(const ReferenceConvolution& of, std::size_t i) {
  return (i % of.width + 1) * of.weights() - 1;
}

/// The inverse of the norm of row t of y.
double inverse_norm(const ReferenceConvolution& of, const std::vector<double>& y, std::int64_t t) {
  double squares = unit_row_epsilon;
  for (std::int64_t c = 0; c < of.width; ++c) squares += y[t * of.width + c] * y[t * of.width + c];
  return 1 / std::sqrt(squares);
}

std::vector<double> activated(std::vector<double> z) {
  for (double& value : z) value *= logistic(value);
  return z;
}

}  // namespace

std::vector<double> reference_sums(const ReferenceConvolution& of) {
  std::vector<double> z(of.tokens() * of.width, 0.0);
  for_each_term(of, [&](auto t, auto row, auto weight) { z[t] += of.w[weight] * of.x[row]; });
  for (std::size_t i = 0; i < z.size() && of.has_bias; ++i) z[i] += of.w[bias_of(of, i)];
  return z;
}

std::vector<double> reference_rows(const ReferenceConvolution& of) {
  std::vector<double> y = activated(reference_sums(of));
  for (std::int64_t t = 0; t < of.tokens() && of.has_unit_rows; ++t) {
    const double scale = inverse_norm(of, y, t);
    for (std::int64_t c = 0; c < of.width; ++c) y[t * of.width + c] *= scale;
  }
  return y;
}

std::vector<double> reference_activation_gradients(const ReferenceConvolution& of,
                                                   const std::vector<double>& dy) {
  const std::vector<double> z = reference_sums(of), y = activated(z);
  std::vector<double> dz = dy;
  for (std::int64_t t = 0; t < of.tokens() && of.has_unit_rows; ++t) {
    const double scale = inverse_norm(of, y, t);
    double along = 0;
    const std::int64_t row = t * of.width;
    for (std::int64_t c = row; c < row + of.width; ++c) along += y[c] * dy[c];
    for (std::int64_t c = row; c < row + of.width; ++c)
      dz[c] = scale * dy[c] - scale * scale * scale * along * y[c];
  }
  for (std::size_t i = 0; i < z.size(); ++i) dz[i] *= logistic(z[i]) * (1 + z[i] * (1 - logistic(z[i])));
  return dz;
}

std::vector<double> reference_input_gradients(const ReferenceConvolution& of, const std::vector<double>& dz) {
  std::vector<double> dx(of.x.size(), 0.0);
  for_each_term(of, [&](auto t, auto row, auto weight) { dx[row] += of.w[weight] * dz[t]; });
  return dx;
}

std::vector<double> reference_weight_gradients(const ReferenceConvolution& of,
                                               const std::vector<double>& dz) {
  std::vector<double> dw(of.w.size(), 0.0);
  for_each_term(of, [&](auto t, auto row, auto weight) { dw[weight] += dz[t] * of.x[row]; });
  for (std::size_t i = 0; i < dz.size() && of.has_bias; ++i) dw[bias_of(of, i)] += dz[i];
  return dw;
}

}  // namespace baton
