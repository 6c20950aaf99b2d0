// SPDX-License-Identifier: Apache-2.0
// Linear attention in the left-product manner, block by block as keys and values come round; no state.
//
//   at home:      K^ = k (.) e^{B_T - B},  a = e^{B_T}           B: cumulative log gate from the rank's start
//   own block:    o  = s tril(Q K^T (.) decays) V                causal, cut into chunks and rectangles
//   block of an earlier rank, in the order of arrival p-1, p-2, ..:
//                 o += s ((q (.) e^B (.) between) K^^T) V        then between = between (.) a of that block
//
// Decay across ranks is three factors <= 1: the key's to its rank's end, that of the ranks between, the
// query's from its rank's start. K^, V and a travel; gates stay at home. Later ranks' blocks are not visible.
// Cost: 2 rows columns (d_k + d_v) flop a block and head, half of that for the own block.
// Source: "LASP-2", arXiv 2502.07563, section 4.1 (Ring Attention without the right-product trick).
#pragma once

#include "sp_methods/kernels/gla_shape.hpp"

namespace baton {

/// Keys and values of one rank, on their way round the ring.
struct KeyBlock {
  const float* k = nullptr;  ///< [tokens, heads, d_k], from left_product_keys.
  const float* v = nullptr;  ///< [tokens, heads, d_v]
  std::int64_t tokens = 0;
};

/// Sets k [tokens, heads, d_k] to the keys decayed to the rank's end, decay [heads, d_k] to the rank's own.
void left_product_keys(float* k, float* decay, const GlaInputs& in, const GlaShape& shape,
                       const Work& work = {});

/// Sets o [tokens, heads, d_v] to what comes from the rank's own keys; reads q, k, v, g.
void left_product_own_block(float* o, const GlaInputs& in, const GlaShape& shape, const Work& work = {});

/// Adds to o what comes from an earlier rank's keys; reads q and g; between [heads, d_k], null means one.
void left_product_block(float* o, const GlaInputs& in, const KeyBlock& block, const float* between,
                        const GlaShape& shape, const Work& work = {});

/// Multiplies between [heads, d_k] by the decay [heads, d_k] of one more rank.
void extend_decay(float* between, const float* decay, const GlaShape& shape, const Work& work = {});

/// Floating-point operations: the own block, with its leaves' full squares; a block of `columns` keys.
double left_product_own_block_flops(const GlaShape& shape);
double left_product_block_flops(const GlaShape& shape, std::int64_t columns);
/// The same of left_product_keys: a multiplication an element.
double left_product_keys_flops(const GlaShape& shape);

}  // namespace baton
