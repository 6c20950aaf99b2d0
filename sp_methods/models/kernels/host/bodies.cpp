// SPDX-License-Identifier: Apache-2.0
// Host bodies of a model's kernels: norms, gates, SwiGLU, embedding, loss and optimiser a row at a
// time, and products of matrices by OpenBLAS on the thread that calls.
#include <cblas.h>

#include <algorithm>
#include <cmath>

#include "sp_methods/models/kernels/block.hpp"
#include "sp_methods/models/kernels/embedding_loss_adamw.hpp"
#include "sp_methods/models/kernels/host/rows.hpp"

namespace baton {
namespace {

/// 1 / sqrt(mean(x^2) + epsilon).
float inverse_rms(const RowIn& x, float epsilon) { return 1 / std::sqrt(x.square().mean() + epsilon); }

/// The gradient of a row x for that of x * inverse_rms(x), which is `d`.
HostRow norm_gradient(const RowIn& x, const HostRow& d, float scale) {
  return scale * (d - x * (scale * scale * (d * x).mean()));
}

/// Makes OpenBLAS compute on the calling thread, since its own threads would take cores from other
/// ranks (docs/decisions/0027-products-by-openblas.md).
void stay_on_this_thread() {
  static const bool is_told = [] {
    openblas_set_num_threads(1);
    return true;
  }();
  static_cast<void>(is_told);
}

}  // namespace

void RmsNorm::on_host(const Operands<OnHost>& x, const Rows& p) {
  for (std::int64_t i = 0; i < p.count * p.groups; ++i) {
    const RowIn row(x.x + i * p.part(), p.part()), weight(x.weight + i % p.groups * p.part(), p.part());
    RowOut(x.y + i * p.part(), p.part()) = row * weight * inverse_rms(row, p.constant);
  }
}

void RmsNormGradients::on_host(const Operands<OnHost>& x, const Rows& p) {
  RowOut(x.d_weight, p.width).setZero();
  for (std::int64_t i = 0; i < p.count * p.groups; ++i) {
    const std::int64_t width = p.part(), at = i * width, of_weight = i % p.groups * width;
    const RowIn row(x.x + at, width), d_y(x.d_y + at, width), weight(x.weight + of_weight, width);
    const float scale = inverse_rms(row, p.constant);
    RowOut(x.d_weight + of_weight, width) += d_y * row * scale;
    RowOut d_x(x.d_x + at, width);
    const HostRow gradient = norm_gradient(row, d_y * weight, scale);
    d_x = gradient;
    if (x.d_residual != nullptr) d_x += RowIn(x.d_residual + at, width);
  }
}

void GatedNorm::on_host(const Operands<OnHost>& x, const Rows& p) {
  const RowIn weight(x.weight, p.width);
  for (std::int64_t i = 0; i < p.count; ++i) {
    const std::int64_t at = i * p.width;
    const RowIn o(x.o + at, p.width), gate(x.gate + at, p.width);
    RowOut(x.y + at, p.width) = o * inverse_rms(o, p.constant) * weight * gate * sigmoid(gate);
  }
}

void GatedNormGradients::on_host(const Operands<OnHost>& x, const Rows& p) {
  const RowIn weight(x.weight, p.width);
  RowOut d_weight(x.d_weight, p.width);
  d_weight.setZero();
  for (std::int64_t i = 0; i < p.count; ++i) {
    const std::int64_t at = i * p.width;
    const RowIn o(x.o + at, p.width), gate(x.gate + at, p.width), d_y(x.d_y + at, p.width);
    const float scale = inverse_rms(o, p.constant);
    const HostRow open = sigmoid(gate), normed = o * scale, d_normed = d_y * gate * open;
    d_weight += d_normed * normed;
    RowOut(x.d_o + at, p.width) = norm_gradient(o, d_normed * weight, scale);
    RowOut(x.d_gate + at, p.width) = d_y * normed * weight * open * (1 + gate * (1 - open));
  }
}

void SwiGlu::on_host(const Operands<OnHost>& x, const Rows& p) {
  for (std::int64_t i = 0; i < p.count; ++i) {
    if (x.gate == nullptr) {
      RowOut(x.m + i * p.width, p.width) = RowIn(x.up + i * p.width, p.width).max(0.0F).square();
      continue;
    }
    const RowIn gate(x.gate + i * p.width, p.width);
    RowOut m(x.m + i * p.width, p.width);
    m = gate * sigmoid(gate);
    if (x.up != nullptr) m *= RowIn(x.up + i * p.width, p.width);
  }
}

void SwiGluGradients::on_host(const Operands<OnHost>& x, const Rows& p) {
  for (std::int64_t i = 0; i < p.count; ++i) {
    const std::int64_t at = i * p.width;
    const RowIn d_m(x.d_m + at, p.width);
    if (x.gate == nullptr) {
      RowOut(x.d_up + at, p.width) = 2 * d_m * RowIn(x.up + at, p.width).max(0.0F);
      continue;
    }
    const RowIn gate(x.gate + at, p.width);
    const HostRow open = sigmoid(gate);
    RowOut d_gate(x.d_gate + at, p.width);
    d_gate = d_m * open * (1 + gate * (1 - open));
    if (x.up == nullptr) continue;
    d_gate *= RowIn(x.up + at, p.width);
    RowOut(x.d_up + at, p.width) = d_m * gate * open;
  }
}

void Embed::on_host(const Operands<OnHost>& x, const TokenRows& p) {
  for (std::int64_t t = 0; t < p.tokens; ++t)
    std::copy_n(x.table + static_cast<std::int64_t>(x.ids[t]) * p.width, p.width, x.x + t * p.width);
}

void EmbedGradients::on_host(const Operands<OnHost>& x, const TokenRows& p) {
  std::fill_n(x.d_table, p.vocabulary * p.width, 0.0F);
  for (std::int64_t t = 0; t < p.tokens; ++t)
    RowOut(x.d_table + static_cast<std::int64_t>(x.ids[t]) * p.width, p.width) +=
        RowIn(x.d_x + t * p.width, p.width);
}

void CrossEntropy::on_host(const Operands<OnHost>& x, const Parameters& p) {
  const float share = 1 / static_cast<float>(p.all_tokens);
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    RowOut row(x.logits + t * p.vocabulary, p.vocabulary);
    const auto target = static_cast<std::int64_t>(x.targets[t]);
    const float most = row.maxCoeff(), of_target = row(target) - most;
    row = (row - most).exp();
    const float sum = row.sum();
    x.losses[t] = std::log(sum) - of_target;
    row *= share / sum;
    row(target) -= share;
  }
}

void AdamW::on_host(const Operands<OnHost>& x, const Parameters& p) {
  const RowIn weights(x.weights, p.count), gradients(x.gradients, p.count), m(x.m, p.count), v(x.v, p.count);
  RowOut new_m(x.new_m, p.count), new_v(x.new_v, p.count);
  new_m = p.beta_1 * m + (1 - p.beta_1) * gradients;
  new_v = p.beta_2 * v + (1 - p.beta_2) * gradients.square();
  RowOut(x.new_weights, p.count) =
      weights * (1 - p.rate * p.decay) -
      p.rate * (new_m / (1 - p.beta_1)) / ((new_v / (1 - p.beta_2)).sqrt() + p.epsilon);
}

void Matmul::on_host(const Operands<OnHost>& x, const Product& p) {
  stay_on_this_thread();
  if (x.c != nullptr && x.c != x.out) std::copy_n(x.c, p.rows * p.columns, x.out);
  const auto transposed = [](bool is) { return is ? CblasTrans : CblasNoTrans; };
  const auto size = [](std::int64_t n) { return static_cast<blasint>(n); };
  cblas_sgemm(CblasRowMajor, transposed(p.transposes_a), transposed(p.transposes_b), size(p.rows),
              size(p.columns), size(p.depth), 1, x.a, size(p.transposes_a ? p.rows : p.depth), x.b,
              size(p.transposes_b ? p.depth : p.columns), x.c == nullptr ? 0 : 1, x.out, size(p.columns));
}

}  // namespace baton
