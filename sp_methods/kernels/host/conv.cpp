// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/conv.hpp"

#include <algorithm>
#include <cmath>

namespace baton {
namespace {

/// The first token that token t sees, in the halo if no document starts between.
std::int64_t first_seen(const ConvShape& p, std::int64_t t) {
  const auto next = std::upper_bound(p.starts.begin(), p.starts.end(), t);
  return std::max(t - p.before(), next == p.starts.begin() ? -p.before() : *(next - 1));
}

/// Calls body(x, i) for the rows that token t sees, each with the number of its weight. Rows of
/// zeros are left out.
template <class Body>
void for_each_seen(const ConvShape& p, std::int64_t t, const float* x, const float* halo, const Body& body) {
  for (std::int64_t from = first_seen(p, t); from <= t; ++from)
    if (from >= 0 || halo != nullptr)
      body(from >= 0 ? x + from * p.row() : halo + (from + p.before()) * p.row(), from - t + p.before());
}

/// Calls body(c, w) for the elements of a row, each with the place of its first weight.
template <class Body>
void for_each_element(const ConvShape& p, const Body& body) {
  for (std::int64_t first = 0; first < p.row(); first += p.channels())
    for (std::int64_t c = 0; c < p.channels(); ++c) body(first + c, c * p.weights());
}

float logistic(float z) { return 1 / (1 + std::exp(-z)); }

/// Sets z to the sums of token t before the activation.
void set_sums(float* z, const ConvShape& p, std::int64_t t, const ConvInputs<OnHost>& in) {
  for_each_element(p, [&](std::int64_t c, std::int64_t w) { z[c] = p.has_bias ? in.w[w + p.taps] : 0; });
  for_each_seen(p, t, in.x, in.halo, [&](const float* x, std::int64_t i) {
    for_each_element(p, [&](std::int64_t c, std::int64_t w) { z[c] += in.w[w + i] * x[c]; });
  });
}

/// The inverse of the norm of a head's row, or one if rows keep their lengths.
float scale_of(const float* y, const ConvShape& p) {
  if (!p.has_unit_rows) return 1;
  float squares = 0;
  for (std::int64_t c = 0; c < p.width; ++c) squares += y[c] * y[c];
  return 1 / std::sqrt(squares + unit_row_epsilon);
}

/// Turns the sums z of a head into dz.
void set_activation_gradients(float* dz, const float* dy, const ConvShape& p) {
  std::vector<float> y(p.width);
  for (std::int64_t c = 0; c < p.width; ++c) y[c] = dz[c] * logistic(dz[c]);
  const float scale = scale_of(y.data(), p);
  float along = 0;  // of the unit row
  for (std::int64_t c = 0; c < p.width && p.has_unit_rows; ++c) along += scale * y[c] * dy[c];
  for (std::int64_t c = 0; c < p.width; ++c) {
    const float of_y = scale * (dy[c] - (p.has_unit_rows ? scale * y[c] * along : 0));
    const float part = logistic(dz[c]);
    dz[c] = of_y * part * (1 + dz[c] * (1 - part));
  }
}

}  // namespace

void Conv::on_host(const Operands<OnHost>& x, const Parameters& p) {
  for (std::int64_t t = 0; t < p.count; ++t) {
    float* row = x.y + t * p.row();
    set_sums(row, p, p.first + t, x.in);
    for (float* y = row; y < row + p.row(); y += p.width) {
      for (std::int64_t c = 0; c < p.width; ++c) y[c] *= logistic(y[c]);
      const float scale = scale_of(y, p);
      for (std::int64_t c = 0; c < p.width; ++c) y[c] *= scale;
    }
  }
}

void ConvActivationGradients::on_host(const Operands<OnHost>& x, const Parameters& p) {
  for (std::int64_t t = 0; t < p.count; ++t) {
    const std::int64_t row = t * p.row();
    set_sums(x.dz + row, p, p.first + t, x.in);
    for (std::int64_t c = row; c < row + p.row(); c += p.width)
      set_activation_gradients(x.dz + c, x.dy + c, p);
  }
}

void ConvInputGradients::on_host(const Operands<OnHost>& x, const Parameters& p) {
  for (std::int64_t s = p.first; s < p.first + p.count; ++s) {
    const std::int64_t row = (s - p.first) * p.row();
    float* dx = (x.dx == nullptr ? x.back : x.dx) + row;
    std::fill_n(dx, p.row(), 0.0F);
    for (std::int64_t t = std::max<std::int64_t>(s, 0); t < std::min(s + p.taps, p.tokens); ++t) {
      if (first_seen(p, t) > s) break;
      const float *dz = x.dz + t * p.row(), *of = x.w + s - t + p.before();
      for_each_element(p, [&](std::int64_t c, std::int64_t w) { dx[c] += of[w] * dz[c]; });
    }
    for (std::int64_t c = 0; c < p.row() && x.later != nullptr; ++c) dx[c] += x.later[row + c];
  }
}

void ConvWeightGradients::on_host(const Operands<OnHost>& x, const Parameters& p) {
  for (std::int64_t t = p.first; t < p.first + p.count; ++t) {
    const float* dz = x.dz + t * p.row();
    for_each_seen(p, t, x.x, x.halo, [&](const float* row, std::int64_t i) {
      for_each_element(p, [&](std::int64_t c, std::int64_t w) { x.dw[w + i] += dz[c] * row[c]; });
    });
    if (p.has_bias) for_each_element(p, [&](std::int64_t c, std::int64_t w) { x.dw[w + p.taps] += dz[c]; });
  }
}

}  // namespace baton
