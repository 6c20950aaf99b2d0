// SPDX-License-Identifier: Apache-2.0
// Causal softmax attention of a rank's queries against one block of keys, and the merge of two such results.
//
//   for query tiles, for key tiles that are visible:    Z = s Q K^T;  m' = max(m, rowmax Z);  P = e^{Z - m'}
//                  l = l e^{m - m'} + rowsum P;  O = O e^{m - m'} + P V
//   out = O / l,  lse = m + log l;    a query that sees no key of the block: out = 0, lse = -inf
//   merge(a, b):   out_a -= sigmoid(lse_b - lse_a) (out_a - out_b),   lse_a -= log sigmoid(lse_a - lse_b)
//
// Visible keys of a query are the first so many of the block, since positions ascend.
// Cost: 2 (d_k + d_v) flop a visible pair and head; tiles on the mask's edge are computed whole.
// Source: Dao, "FlashAttention-2", 2023, algorithm 1; zhuzilin/ring-flash-attention, utils.py (the merge).
#pragma once

#include <cmath>

#include "sp_methods/kernels/positions.hpp"

namespace baton {

/// The sizes of one rank's queries and one block of keys.
struct SoftmaxShape {
  std::int64_t q_tokens = 0;
  std::int64_t k_tokens = 0;
  std::int64_t heads = 1;
  std::int64_t d_k = 0;
  std::int64_t d_v = 0;
  Positions q_positions;
  Positions k_positions;

  /// The factor s of the scores, d_k^{-1/2}.
  float scale() const { return 1.0F / std::sqrt(static_cast<float>(d_k)); }
  /// Keys of the block that local query i sees.
  std::int64_t visible(std::int64_t i) const { return k_positions.visible(q_positions.at(i), k_tokens); }
  /// Pairs (query, key) that the mask leaves, in one head.
  double visible_pairs() const;
};

/// Queries, keys and values: [q_tokens, heads, d_k], [k_tokens, heads, d_k], [k_tokens, heads, d_v].
struct SoftmaxInputs {
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
};

/// Sets out [q_tokens, heads, d_v] and lse [q_tokens, heads] (natural log) to attention over this block.
void softmax_block(float* out, float* lse, const SoftmaxInputs& in, const SoftmaxShape& shape,
                   int threads = 1);

/// Merges a block's result into out and lse, shaped as in softmax_block; start from out = 0, lse = -inf.
void merge_softmax(float* out, float* lse, const float* block_out, const float* block_lse,
                   const SoftmaxShape& shape, int threads = 1);

/// Floating-point operations: visible pairs only; the merge's three an element.
double softmax_block_flops(const SoftmaxShape& shape);
double merge_softmax_flops(const SoftmaxShape& shape);
/// Bytes that must move: each input once, each result once (read and written where it is merged into). Tensors have
/// elements of `element` bytes; what a block makes, and its lse, is f32.
double softmax_block_bytes(const SoftmaxShape& shape, std::int64_t element);
double merge_softmax_bytes(const SoftmaxShape& shape);

}  // namespace baton
