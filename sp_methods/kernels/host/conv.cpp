// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/conv.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace baton {
namespace {

/// One of q, k and v in the rows of a kernel.
struct Part {
  int index = 0;            ///< 0 for q, 1 for k, 2 for v.
  std::int64_t width = 0;   ///< Channels of a head.
  std::int64_t offset = 0;  ///< The first of them among the channels of a head's weights.
};

std::array<Part, 3> parts_of(const LayerShape& share) {
  return {{{0, share.d_k, 0}, {1, share.d_k, share.d_k}, {2, share.d_v, 2 * share.d_k}}};
}

template <class Rows>
auto pointer(const Rows& rows, const Part& part) {
  return part.index == 0 ? rows.q : part.index == 1 ? rows.k : rows.v;
}

/// One head of q, k or v over a run.
struct Head {
  const ConvShape& p;
  Part part;
  std::int64_t head = 0;

  std::int64_t row() const { return p.share.heads * part.width; }
  /// The row of token t in rows of which the first is that of token `first`.
  template <class Element>
  Element* at(Element* rows, std::int64_t t, std::int64_t first) const {
    return rows + (t - first) * row() + head * part.width;
  }
  /// The weights of the first channel in a tensor of weights.
  template <class Element>
  Element* weights(Element* w) const {
    return w + (head % p.weight_heads() * p.channels() + part.offset) * p.width();
  }
  bool is_unit() const { return p.has_unit_rows && part.index < 2; }
  /// The row of x of token t, which may stand in the halo; null for zeros.
  const float* x(const ConvInputs<OnHost>& in, std::int64_t t) const {
    if (t >= 0) return at(pointer(in.x, part), t, 0);
    const float* halo = pointer(in.halo, part);
    return halo == nullptr ? nullptr : at(halo, t, -p.before());
  }
};

/// The first token that token t sees, in the halo if no document starts between.
std::int64_t first_seen(const ConvShape& p, std::int64_t t) {
  const auto next = std::upper_bound(p.starts.begin(), p.starts.end(), t);
  return std::max(t - p.before(), next == p.starts.begin() ? -p.before() : *(next - 1));
}

template <class Body>
void for_each_head(const ConvShape& p, const Body& body) {
  for (const Part& part : parts_of(p.share))
    for (std::int64_t head = 0; head < p.share.heads; ++head) body(Head{p, part, head});
}

template <class Body>
void for_each_row(const ConvShape& p, const Body& body) {
  for_each_head(p, [&](const Head& head) {
    for (std::int64_t t = p.first; t < p.first + p.count; ++t) body(head, t);
  });
}

float logistic(float z) { return 1 / (1 + std::exp(-z)); }

/// Sets z to the sums of token t before the activation.
void set_sums(float* z, const Head& head, std::int64_t t, const ConvInputs<OnHost>& in) {
  const std::int64_t W = head.p.width();
  const float* w = head.weights(in.w);
  std::fill_n(z, head.part.width, 0.0F);
  for (std::int64_t from = first_seen(head.p, t); from <= t; ++from) {
    const float* x = head.x(in, from);
    if (x == nullptr) continue;
    const std::int64_t i = from - t + W - 1;
    for (std::int64_t c = 0; c < head.part.width; ++c) z[c] += w[c * W + i] * x[c];
  }
}

/// The inverse of the norm of a row.
float inverse_norm(const float* y, std::int64_t width) {
  float squares = 0;
  for (std::int64_t c = 0; c < width; ++c) squares += y[c] * y[c];
  return 1 / std::sqrt(squares + unit_row_epsilon);
}

/// Adds the sum over tokens t of w_{s - t + W - 1} dz_t to dx of token s, over those that see s
/// among [0, tokens).
void add_input_gradients(float* dx, const Head& head, std::int64_t s, std::int64_t tokens, const float* dz,
                         const float* weights) {
  const std::int64_t W = head.p.width();
  const float* w = head.weights(weights);
  for (std::int64_t t = std::max<std::int64_t>(s, 0); t < std::min(s + W, tokens); ++t) {
    if (first_seen(head.p, t) > s) return;
    const float* of = head.at(dz, t, 0);
    for (std::int64_t c = 0; c < head.part.width; ++c) dx[c] += w[c * W + s - t + W - 1] * of[c];
  }
}

}  // namespace

void Conv::on_host(const Operands<OnHost>& x, const Parameters& p) {
  for_each_row(p, [&](const Head& head, std::int64_t t) {
    float* y = head.at(pointer(x.y, head.part), t, p.first);
    const std::int64_t width = head.part.width;
    set_sums(y, head, t, x.in);
    for (std::int64_t c = 0; c < width; ++c) y[c] *= logistic(y[c]);
    if (!head.is_unit()) return;
    const float scale = inverse_norm(y, width);
    for (std::int64_t c = 0; c < width; ++c) y[c] *= scale;
  });
}

void ConvActivationGradients::on_host(const Operands<OnHost>& x, const Parameters& p) {
  std::vector<float> y(std::max(p.share.d_k, p.share.d_v));
  for_each_row(p, [&](const Head& head, std::int64_t t) {
    const float* dy = head.at(pointer(x.dy, head.part), t, p.first);
    float* dz = head.at(pointer(x.dz, head.part), t, p.first);
    const std::int64_t width = head.part.width;
    set_sums(dz, head, t, x.in);
    for (std::int64_t c = 0; c < width; ++c) y[c] = dz[c] * logistic(dz[c]);
    const float scale = head.is_unit() ? inverse_norm(y.data(), width) : 1;
    float along = 0;  // of the unit row
    for (std::int64_t c = 0; c < width && head.is_unit(); ++c) along += scale * y[c] * dy[c];
    for (std::int64_t c = 0; c < width; ++c) {
      const float of_y = scale * (dy[c] - (head.is_unit() ? scale * y[c] * along : 0));
      const float part = logistic(dz[c]);
      dz[c] = of_y * part * (1 + dz[c] * (1 - part));
    }
  });
}

void ConvInputGradients::on_host(const Operands<OnHost>& x, const Parameters& p) {
  for_each_row(p, [&](const Head& head, std::int64_t s) {
    float* dx = head.at(pointer(x.dx, head.part), s, p.first);
    std::fill_n(dx, head.part.width, 0.0F);
    add_input_gradients(dx, head, s, p.share.tokens, pointer(x.dz, head.part), x.w);
    const float* later = pointer(x.later, head.part);
    if (later == nullptr || s < p.later) return;
    const float* of = head.at(later, s, p.later);
    for (std::int64_t c = 0; c < head.part.width; ++c) dx[c] += of[c];
  });
}

void ConvHaloGradients::on_host(const Operands<OnHost>& x, const Parameters& p) {
  for_each_head(p, [&](const Head& head) {
    for (std::int64_t s = -p.before(); s < 0; ++s) {
      float* dx = head.at(pointer(x.dx, head.part), s, -p.before());
      std::fill_n(dx, head.part.width, 0.0F);
      add_input_gradients(dx, head, s, p.count, pointer(x.dz, head.part), x.w);
    }
  });
}

void ConvWeightGradients::on_host(const Operands<OnHost>& x, const Parameters& p) {
  const std::int64_t W = p.width();
  for_each_row(p, [&](const Head& head, std::int64_t t) {
    const float* dz = head.at(pointer(x.dz, head.part), t, 0);
    float* dw = head.weights(x.dw);
    for (std::int64_t from = first_seen(p, t); from <= t; ++from) {
      const float* of = head.x(x.in, from);
      if (of == nullptr) continue;
      const std::int64_t i = from - t + W - 1;
      for (std::int64_t c = 0; c < head.part.width; ++c) dw[c * W + i] += dz[c] * of[c];
    }
  });
}

}  // namespace baton
