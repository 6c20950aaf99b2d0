// SPDX-License-Identifier: Apache-2.0
// Flops and bytes of the left-product kernels.
#include "sp_methods/kernels/left_product_contracts.hpp"

namespace baton {
namespace {

/// Bytes of `keys` tensors of width d_k, `values` tensors of width d_v and `gates` tensors of
/// gates.
double tensor_bytes(const LeftProduct& p, std::int64_t keys, std::int64_t values, std::int64_t gates) {
  const GlaShape& s = p.shape;
  const auto width = static_cast<double>(keys * s.d_k + values * s.d_v + gates * s.gate_width());
  return s.rows() * width * static_cast<double>(bytes_of(p.dtype));
}

/// The same for f32 sums.
double sum_bytes(const LeftProduct& p, std::int64_t keys, std::int64_t values) {
  return 4.0 * p.shape.rows() * static_cast<double>(keys * p.shape.d_k + values * p.shape.d_v);
}

double scaled_bytes(const LeftProduct& p) {
  return p.has_accumulators && p.is_gated() ? tensor_bytes(p, 2, 0, 0) : 0;
}

/// Keys and values of another rank's block.
double block_elements(const LeftProduct& p) {
  return static_cast<double>(p.block_tokens * p.shape.heads * (p.shape.d_k + p.shape.d_v));
}

/// Pairs (query, key) that one head's own block computes: causal_block.hpp halves runs of more than
/// `leaf` tokens into rectangles, computed once, and squares, computed whole.
double own_pairs(std::int64_t tokens, std::int64_t leaf) {
  const auto n = static_cast<double>(tokens);
  if (tokens <= leaf) return n * n;
  const auto low = tokens / 2;
  return static_cast<double>(low) * (n - static_cast<double>(low)) + own_pairs(low, leaf) +
         own_pairs(tokens - low, leaf);
}

double forward_flops(const GlaShape& s) { return static_cast<double>(2 * (s.d_k + s.d_v)); }
double backward_flops(const GlaShape& s) { return static_cast<double>(6 * s.d_k + 4 * s.d_v); }

}  // namespace

double LeftProductKeys::flops(const LeftProduct& p) {
  return p.shape.rows() * static_cast<double>(p.shape.d_k);
}
double LeftProductKeys::bytes(const LeftProduct& p) {
  const double scaling = p.has_accumulators ? tensor_bytes(p, 1, 0, 0) + scaled_bytes(p) : 0;
  return tensor_bytes(p, p.circulates ? 2 : 1, 0, 1) + scaling;
}

double LeftProductOwnBlock::flops(const LeftProduct& p) {
  const GlaShape& s = p.shape;
  return own_pairs(s.tokens, s.chunk) * forward_flops(s) * static_cast<double>(s.heads);
}
double LeftProductOwnBlock::bytes(const LeftProduct& p) {
  return tensor_bytes(p, 2, 2, 1) + scaled_bytes(p) + (p.has_accumulators ? sum_bytes(p, 0, 1) : 0);
}

double LeftProductBlock::flops(const LeftProduct& p) {
  return p.shape.rows() * static_cast<double>(p.block_tokens) * forward_flops(p.shape);
}
double LeftProductBlock::bytes(const LeftProduct& p) {
  return tensor_bytes(p, 1, 0, 1) + sum_bytes(p, 0, 2) +
         block_elements(p) * static_cast<double>(bytes_of(p.dtype));
}

/// Counts elements of the slice, in which a decay of f32 takes two elements of bf16.
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
  return p.shape.rows() * static_cast<double>(p.block_tokens) * backward_flops(p.shape);
}
double LeftProductBlockGradients::bytes(const LeftProduct& p) {
  const double gates = p.has_accumulators ? sum_bytes(p, p.is_gated() ? 2 : 0, 0) : tensor_bytes(p, 0, 0, 2);
  return tensor_bytes(p, 1, 1, 1) + sum_bytes(p, 2, 0) + gates +
         block_elements(p) * static_cast<double>(bytes_of(p.dtype) + 2 * 4);
}

/// The returned gradients and the accumulators, where they are there, are added once each.
double LeftProductHomeGradients::flops(const LeftProduct& p) {
  const int added = (p.circulates ? 1 : 0) + (p.has_accumulators ? 1 : 0);
  return added * p.shape.rows() * static_cast<double>(2 * p.shape.d_k + p.shape.d_v);
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
  return p.shape.rows() * static_cast<double>(p.shape.gate_width());
}
double LeftProductEdgeGradients::bytes(const Parameters& p) {
  const double later = p.is_last ? 0 : 4.0 * static_cast<double>(p.shape.heads * p.shape.d_k);
  return tensor_bytes(p, 0, 0, 2) + later + (p.has_accumulators ? sum_bytes(p, 1, 0) : 0);
}

}  // namespace baton
