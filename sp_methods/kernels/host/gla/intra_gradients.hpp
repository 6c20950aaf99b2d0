// SPDX-License-Identifier: Apache-2.0
// The part of the gradients that stays within chunks: it needs no state, so it runs beside the exchange.
//
//   A = s tril(Q K^T (.) decays), dA = s tril(dO V^T), by chunk:
//   dV = A^T dO      dq_i = sum_j dA_ij k_j e^{b_i - b_j}      dk_j = sum_i dA_ij q_i e^{b_i - b_j}
//   dg_i = sum_{u >= i} (q_u dq_u - k_u dk_u), the diagonal left out of dq and dk here
//
// Cost: chunk (6 d_k + 4 d_v) flop a token and head; heads and chunks independent.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (chunkwise form), differentiated.
#pragma once

#include "sp_methods/kernels/gla_shape.hpp"

namespace baton {

/// Sets the gradients to what comes from pairs within a chunk; d_o [tokens, heads, d_v].
void intra_gradients(const GlaGradients& out, const GlaInputs& in, const float* d_o, const GlaShape& shape,
                     const Work& work = {});

/// Floating-point operations of intra_gradients.
double intra_gradients_flops(const GlaShape& shape);
/// Bytes intra_gradients must move: each input once, each result once.
double intra_gradients_bytes(const GlaShape& shape);

}  // namespace baton
