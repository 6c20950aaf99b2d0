// SPDX-License-Identifier: Apache-2.0
// Host bodies of the left-product kernels, forward and backward, and their cost.
#include "sp_methods/kernels/left_product.hpp"

#include "sp_methods/kernels/host/gla/causal_block.hpp"
#include "sp_methods/kernels/host/products.hpp"

namespace baton {

void LeftProductKeys::on_host(const Operands<OnHost>& x, const LeftProduct& p) {
  if (x.k == nullptr) return;
  const LayerShape& shape = p.shape;
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
  const LayerShape& shape = p.shape;
  const Tokens all{0, shape.tokens};
  for (Index h = 0; h < shape.heads; ++h) {
    head_rows(x.o, all, h, shape.heads, shape.d_v).setZero();
    CausalOutput(x.o, {x.in, shape, h}, shape.chunk).add(all);
  }
  if (p.has_accumulators) std::fill_n(x.o_accumulator, shape.tokens * shape.heads * shape.d_v, 0.0F);
}

void LeftProductBlock::on_host(const Operands<OnHost>& x, const LeftProduct& p) {
  const LayerShape& shape = p.shape;
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

namespace {

/// Adds sign * (suffix sums of terms) to dg and sign * (sum of terms) to boundary_gate_sum.
/// Overwrites terms.
void add_to_gates(float* dg, float* boundary_gate_sum, Tile& terms, float sign, const GlaHead& head) {
  const LayerShape& shape = head.shape;
  if (shape.gate_width() == 0) return;
  terms *= sign;
  suffix_sum(terms);
  add_gate_gradient(head_rows(dg, {0, shape.tokens}, head.head, shape.heads, shape.gate_width()), terms);
  matrix_at(boundary_gate_sum, head.head, 1, shape.d_k) += terms.row(0);
}

/// Adds one head's gradients of the pairs with an earlier rank's keys.
void add_block_gradients(const LeftProductBlockGradients::Operands<OnHost>& x, const LeftProduct& p,
                         const GlaHead& head) {
  const LayerShape& shape = p.shape;
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
  const LayerShape& shape = p.shape;
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
  const LayerShape& shape = p.shape;
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
  const LayerShape& shape = p.shape;
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

namespace {

/// Bytes of `keys` tensors of width d_k, `values` of width d_v and `gates` of the gate's width.
double tensor_bytes(const LeftProduct& p, std::int64_t keys, std::int64_t values, std::int64_t gates) {
  const LayerShape& s = p.shape;
  const auto width = static_cast<double>(keys * s.d_k + values * s.d_v + gates * s.gate_width());
  return s.token_rows() * width * static_cast<double>(bytes_of(p.dtype));
}

/// Bytes of f32 sums, of which `keys` have width d_k and `values` have width d_v.
double sum_bytes(const LeftProduct& p, std::int64_t keys, std::int64_t values) {
  return 4.0 * p.shape.token_rows() * static_cast<double>(keys * p.shape.d_k + values * p.shape.d_v);
}

double scaled_bytes(const LeftProduct& p) {
  return p.has_accumulators && p.is_gated() ? tensor_bytes(p, 2, 0, 0) : 0;
}

/// Number of elements in the keys and values of another rank's block.
double block_elements(const LeftProduct& p) {
  return static_cast<double>(p.block_tokens * p.shape.heads * (p.shape.d_k + p.shape.d_v));
}

/// Number of pairs (query, key) that one head's own block computes. causal_block.hpp halves runs of
/// more than `leaf` tokens into rectangles, computed once, and squares, computed whole.
double own_pairs(std::int64_t tokens, std::int64_t leaf) {
  const auto n = static_cast<double>(tokens);
  if (tokens <= leaf) return n * n;
  const auto low = tokens / 2;
  return static_cast<double>(low) * (n - static_cast<double>(low)) + own_pairs(low, leaf) +
         own_pairs(tokens - low, leaf);
}

double forward_flops(const LayerShape& s) { return static_cast<double>(2 * (s.d_k + s.d_v)); }
double backward_flops(const LayerShape& s) { return static_cast<double>(6 * s.d_k + 4 * s.d_v); }

}  // namespace

double LeftProductKeys::flops(const LeftProduct& p) {
  return p.shape.token_rows() * static_cast<double>(p.shape.d_k);
}
double LeftProductKeys::bytes(const LeftProduct& p) {
  const double scaling = p.has_accumulators ? tensor_bytes(p, 1, 0, 0) + scaled_bytes(p) : 0;
  return tensor_bytes(p, p.circulates ? 2 : 1, 0, 1) + scaling;
}

double LeftProductOwnBlock::flops(const LeftProduct& p) {
  const LayerShape& s = p.shape;
  return own_pairs(s.tokens, s.chunk) * forward_flops(s) * static_cast<double>(s.heads);
}
double LeftProductOwnBlock::bytes(const LeftProduct& p) {
  return tensor_bytes(p, 2, 2, 1) + scaled_bytes(p) + (p.has_accumulators ? sum_bytes(p, 0, 1) : 0);
}

double LeftProductBlock::flops(const LeftProduct& p) {
  return p.shape.token_rows() * static_cast<double>(p.block_tokens) * forward_flops(p.shape);
}
double LeftProductBlock::bytes(const LeftProduct& p) {
  return tensor_bytes(p, 1, 0, 1) + sum_bytes(p, 0, 2) +
         block_elements(p) * static_cast<double>(bytes_of(p.dtype));
}

/// Number of elements in the slice, where a decay of f32 counts as two elements of bf16.
double ExtendDecay::flops(const LeftProduct& p) {
  return static_cast<double>(p.shape.heads * p.shape.d_k * bytes_of(Dtype::f32) / bytes_of(p.dtype));
}
double ExtendDecay::bytes(const LeftProduct& p) {
  return 3.0 * 4.0 * static_cast<double>(p.shape.heads * p.shape.d_k);
}

double LeftProductOwnGradients::flops(const LeftProduct& p) {
  return LeftProductOwnBlock::flops(p) * backward_flops(p.shape) / forward_flops(p.shape);
}
double LeftProductOwnGradients::bytes(const LeftProduct& p) {
  return tensor_bytes(p, 4, 3, 2) + scaled_bytes(p) +
         (p.has_accumulators ? sum_bytes(p, p.is_gated() ? 3 : 2, 1) : 0);
}

double LeftProductBlockGradients::flops(const LeftProduct& p) {
  return p.shape.token_rows() * static_cast<double>(p.block_tokens) * backward_flops(p.shape);
}
double LeftProductBlockGradients::bytes(const LeftProduct& p) {
  const double gates = p.has_accumulators ? sum_bytes(p, p.is_gated() ? 2 : 0, 0) : tensor_bytes(p, 0, 0, 2);
  return tensor_bytes(p, 1, 1, 1) + sum_bytes(p, 2, 0) + gates +
         block_elements(p) * static_cast<double>(bytes_of(p.dtype) + 2 * 4);
}

/// One addition an element for the returned gradients, and one for the accumulators, if they exist.
double LeftProductHomeGradients::flops(const LeftProduct& p) {
  const int added = (p.circulates ? 1 : 0) + (p.has_accumulators ? 1 : 0);
  return added * p.shape.token_rows() * static_cast<double>(2 * p.shape.d_k + p.shape.d_v);
}
double LeftProductHomeGradients::bytes(const LeftProduct& p) {
  double bytes = 0;
  if (p.has_accumulators) bytes += tensor_bytes(p, 4, 2, 0) + sum_bytes(p, p.is_gated() ? 3 : 2, 1);
  if (!p.circulates) return bytes;
  bytes += sum_bytes(p, 1, 1);
  if (!p.has_accumulators) bytes += tensor_bytes(p, 2, 2, 2);           // dk, dv and dg
  if (p.is_gated()) bytes += tensor_bytes(p, 1, 0, 1);                  // the key as it circulated
  if (p.has_accumulators && p.is_gated()) bytes += sum_bytes(p, 1, 0);  // the gate terms
  return bytes;
}

double LeftProductEdgeGradients::flops(const Parameters& p) {
  return p.shape.token_rows() * static_cast<double>(p.shape.gate_width());
}
double LeftProductEdgeGradients::bytes(const Parameters& p) {
  const double later = p.is_last ? 0 : 4.0 * static_cast<double>(p.shape.heads * p.shape.d_k);
  return tensor_bytes(p, 0, 0, 2) + later + (p.has_accumulators ? sum_bytes(p, 1, 0) : 0);
}

}  // namespace baton
