// SPDX-License-Identifier: Apache-2.0
// Backward of linear attention in the left-product manner, block by block; keys' gradients travel with them.
//
//   own block:      dq, dk, dv, dg = those of causal attention within the rank
//   earlier block:  Q~ = q (.) e^B (.) between,  dA = s dO V^T,  A = s Q~ K^^T
//                   dV += A^T dO,  dK^ += dA^T Q~,  dq += x := (dA K^) (.) e^B (.) between
//                   dg_i += sum_{u >= i} q_u x_u,   edge += sum_u q_u x_u
//   back at home:   dk += y := dK^ (.) e^{B_T - B},  dv += dV
//                   dg_i -= sum_{u >= i} k_u y_u,   edge -= sum_u k_u y_u
//   last:           dg_i += sum of edge over later ranks       (an exclusive suffix sum of [heads, d_k])
//
// Cost: rows columns (6 d_k + 4 d_v) flop a block and head, half of that for the own block.
// Source: "LASP-2", arXiv 2502.07563, section 4.1; gates' gradients by the suffix-sum identity of
// "Gated Linear Attention Transformers", arXiv 2312.06635, applied across ranks.
#pragma once

#include "sp_methods/kernels/host/left_product/block.hpp"

namespace baton {

/// Gradients that travel with a KeyBlock; zero when they leave home.
struct KeyBlockGradients {
  float* dk = nullptr;  ///< [tokens, heads, d_k], of the decayed keys.
  float* dv = nullptr;  ///< [tokens, heads, d_v]
};

/// Sets the gradients to what comes from pairs within the rank.
void left_product_own_gradients(const GlaGradients& out, const GlaInputs& in, const float* d_o,
                                const GlaShape& shape, const Work& work = {});

/// Adds the pairs of this rank's queries with an earlier rank's keys: to dq, dg and edge [heads, d_k] of this
/// rank and to the gradients travelling with the block. dg and edge may be null where there is no gate.
void left_product_block_gradients(const GlaGradients& out, float* edge, const KeyBlockGradients& block_out,
                                  const GlaInputs& in, const float* d_o, const KeyBlock& block,
                                  const float* between, const GlaShape& shape, const Work& work = {});

/// Adds the travelled gradients of this rank's own keys to dk, dv, dg, and takes them off edge [heads, d_k].
void left_product_home_gradients(const GlaGradients& out, float* edge, const KeyBlockGradients& home,
                                 const GlaInputs& in, const GlaShape& shape, const Work& work = {});

/// Adds to dg the sum of edge over all later ranks, `later` [heads, d_k].
void left_product_edge_gradients(float* dg, const float* later, const GlaShape& shape, const Work& work = {});

/// Floating-point operations, as in the forward pass.
double left_product_own_gradients_flops(const GlaShape& shape);
double left_product_block_gradients_flops(const GlaShape& shape, std::int64_t columns);
double left_product_home_gradients_flops(const GlaShape& shape);

}  // namespace baton
