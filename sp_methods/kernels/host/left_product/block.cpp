// SPDX-License-Identifier: Apache-2.0
// Host bodies of the left-product blocks, forward.
#include "sp_methods/kernels/host/gla/causal_block.hpp"
#include "sp_methods/kernels/host/left_product/tiles.hpp"
#include "sp_methods/kernels/left_product_contracts.hpp"

namespace baton {

void LeftProductKeys::on_host(const Operands<OnHost>& x, const LeftProduct& p) {
  if (x.k == nullptr) return;
  const GlaShape& shape = p.shape;
  const Tokens all{0, shape.tokens};
  Tile gates, factor, k;
  Eigen::ArrayXd total(shape.d_k);
  for (Index h = 0; h < shape.heads; ++h) {
    const GlaHead head{x.in, shape, h};
    relative_gates(gates, head.g(all), shape.tokens - 1);
    set_decays(factor, gates, -1.0F);
    scale_rows(k, head.k(all), factor);
    head_rows(x.k, all, h, shape.heads, shape.d_k) = k;
    add_total_gate(total.setZero(), head.g(all));
    Eigen::Map<Eigen::ArrayXf>(x.decay + h * shape.d_k, shape.d_k) = decay_of(total);
  }
}

void LeftProductOwnBlock::on_host(const Operands<OnHost>& x, const LeftProduct& p) {
  const GlaShape& shape = p.shape;
  const Tokens all{0, shape.tokens};
  for (Index h = 0; h < shape.heads; ++h) {
    head_rows(x.o, all, h, shape.heads, shape.d_v).setZero();
    CausalOutput(x.o, {x.in, shape, h}, shape.chunk).add(all);
  }
  if (p.has_accumulators) std::fill_n(x.o_accumulator, shape.tokens * shape.heads * shape.d_v, 0.0F);
}

void LeftProductBlock::on_host(const Operands<OnHost>& x, const LeftProduct& p) {
  const GlaShape& shape = p.shape;
  const Tokens rows{0, shape.tokens}, columns{0, p.block_tokens};
  Tile gates, factor, q;
  for (Index h = 0; h < shape.heads; ++h) {
    const GlaHead head{x.in, shape, h};
    relative_gates(gates, head.g(rows), -1);
    set_decays(factor, gates, 1.0F);
    scale_rows(q, head.q(rows), factor);
    if (x.between != nullptr) q.array().rowwise() *= matrix_at(x.between, h, 1, shape.d_k).row(0).array();
    add_left_product(head_rows(x.o, rows, h, shape.heads, shape.d_v), q,
                     head_rows(x.block.k, columns, h, shape.heads, shape.d_k),
                     head_rows(x.block.v, columns, h, shape.heads, shape.d_v), shape.scale());
  }
}

void ExtendDecay::on_host(const Operands<OnHost>& x, const LeftProduct& p) {
  const Index count = p.shape.heads * p.shape.d_k;
  Eigen::Map<Eigen::ArrayXf>(x.between, count) *= Eigen::Map<const Eigen::ArrayXf>(x.decay, count);
}

}  // namespace baton
