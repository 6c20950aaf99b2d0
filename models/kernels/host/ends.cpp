// SPDX-License-Identifier: Apache-2.0
// Host bodies of embedding, loss and optimiser.
#include "models/kernels/ends.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

namespace baton {
namespace {

using Row = Eigen::ArrayXf;
using RowIn = Eigen::Map<const Row>;
using RowOut = Eigen::Map<Row>;

}  // namespace

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
  RowOut(x.new_weights, p.count) = weights * (1 - p.rate * p.decay) -
                                p.rate * (new_m / (1 - p.beta_1)) /
                                    ((new_v / (1 - p.beta_2)).sqrt() + p.epsilon);
}

}  // namespace baton
