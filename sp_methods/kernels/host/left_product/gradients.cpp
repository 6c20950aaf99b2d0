// SPDX-License-Identifier: Apache-2.0
// Host bodies of the left-product blocks, backward.
#include "sp_methods/kernels/host/gla/causal_block.hpp"
#include "sp_methods/kernels/host/left_product/tiles.hpp"
#include "sp_methods/kernels/left_product_contracts.hpp"

namespace baton {
namespace {

/// Adds sign * (the suffix sums of terms) to dg and sign * (their sum) to boundary_gate_sum.
/// Overwrites the terms.
void add_to_gates(float* dg, float* boundary_gate_sum, Tile& terms, float sign, const GlaHead& head) {
  const GlaShape& shape = head.shape;
  if (shape.gate_width() == 0) return;
  terms *= sign;
  suffix_sum(terms);
  add_gate_gradient(head_rows(dg, {0, shape.tokens}, head.head, shape.heads, shape.gate_width()), terms);
  matrix_at(boundary_gate_sum, head.head, 1, shape.d_k) += terms.row(0);
}

/// Adds one head's gradients of the pairs with an earlier rank's keys.
void add_block_gradients(const LeftProductBlockGradients::Operands<OnHost>& x, const LeftProduct& p,
                         const GlaHead& head) {
  const GlaShape& shape = p.shape;
  const Tokens rows{0, shape.tokens}, columns{0, p.block_tokens};
  const auto keys_of = [&](auto* from) {
    return head_rows(from, columns, head.head, shape.heads, shape.d_k);
  };
  const auto values_of = [&](auto* from, Tokens t) {
    return head_rows(from, t, head.head, shape.heads, shape.d_v);
  };
  Tile gates, factor, decay, q, dq;
  relative_gates(gates, head.g(rows), -1);
  set_decays(factor, gates, 1.0F);
  q.setOnes(shape.tokens, shape.d_k);
  if (x.between != nullptr) q.rowwise() = matrix_at(x.between, head.head, 1, shape.d_k).row(0);
  scale_rows(decay, q, factor);
  q = decay.cwiseProduct(head.q(rows));

  dq.setZero(shape.tokens, shape.d_k);
  add_left_product_gradients({dq, keys_of(x.block_dk), values_of(x.block_dv, columns)}, q, keys_of(x.block.k),
                             values_of(x.block.v, columns), values_of(x.d_o, rows), shape.scale());
  dq.array() *= decay.array();
  head_rows(x.dq, rows, head.head, shape.heads, shape.d_k) += dq;
  dq.array() *= head.q(rows).array();
  add_to_gates(x.dg, x.boundary_gate_sum, dq, 1.0F, head);
}

}  // namespace

void LeftProductOwnGradients::on_host(const Operands<OnHost>& x, const LeftProduct& p) {
  const GlaShape& shape = p.shape;
  for (Index h = 0; h < shape.heads; ++h)
    CausalGradients(x.out, {x.in, shape, h}, x.d_o, shape.chunk).set({0, shape.tokens});
  if (!p.has_accumulators) return;
  const Index keys = shape.tokens * shape.heads * shape.d_k;
  std::fill_n(x.dq_accumulator, keys, 0.0F);
  std::fill_n(x.dk_accumulator, keys, 0.0F);
  std::fill_n(x.dv_accumulator, shape.tokens * shape.heads * shape.d_v, 0.0F);
  if (p.is_gated()) std::fill_n(x.gate_terms, keys, 0.0F);
}

void LeftProductBlockGradients::on_host(const Operands<OnHost>& x, const LeftProduct& p) {
  for (Index h = 0; h < p.shape.heads; ++h) add_block_gradients(x, p, {x.in, p.shape, h});
}

void LeftProductHomeGradients::on_host(const Operands<OnHost>& x, const LeftProduct& p) {
  if (x.returned_dk == nullptr) return;
  const GlaShape& shape = p.shape;
  const Tokens all{0, shape.tokens};
  Tile gates, factor, dk;
  for (Index h = 0; h < shape.heads; ++h) {
    const GlaHead head{x.in, shape, h};
    relative_gates(gates, head.g(all), shape.tokens - 1);
    set_decays(factor, gates, -1.0F);
    const auto of_head = [&](auto* from, Index width) { return head_rows(from, all, h, shape.heads, width); };
    scale_rows(dk, of_head(x.returned_dk, shape.d_k), factor);
    of_head(x.out.dk, shape.d_k) += dk;
    of_head(x.out.dv, shape.d_v) += of_head(x.returned_dv, shape.d_v);
    dk.array() *= head.k(all).array();
    add_to_gates(x.out.dg, x.boundary_gate_sum, dk, -1.0F, head);
  }
}

void LeftProductEdgeGradients::on_host(const Operands<OnHost>& x, const Parameters& p) {
  const GlaShape& shape = p.shape;
  const Index width = shape.gate_width();
  if (x.later == nullptr) return;
  for (Index h = 0; h < shape.heads; ++h) {
    auto rows = head_rows(x.dg, {0, shape.tokens}, h, shape.heads, width);
    const auto sum = matrix_at(x.later, h, 1, shape.d_k);
    if (width == shape.d_k)
      rows.rowwise() += sum.row(0);
    else
      rows.array() += sum.sum();
  }
}

}  // namespace baton
