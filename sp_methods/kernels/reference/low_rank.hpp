// SPDX-License-Identifier: Apache-2.0
// The oracle of one head of linear attention with a low-rank rule over a whole sequence, token by
// token in double precision.
//
//   forward:    u = S^T a_t,   S <- Diag(e^{g_t}) S + b_t u^T + k_t v_t^T,     o_t = s S^T q_t
//   backward:   D <- D + s q_t do_t^T,  dq_t = s S_t do_t,   dk_t = D v_t,   dv_t = D^T k_t
//               db_t = D u,   du = D^T b_t,   da_t = S du,   dg_t = rowsum(D (.) Diag(e^{g_t}) S)
//               D <- Diag(e^{g_t}) D + a_t du^T
//
// Columns of v and d_o have recurrences of their own, as those of a delta rule (delta_rule.hpp).
// Cost: 9 tokens d_k d_v flop forward, 40 backward, keeping a state every sqrt(tokens) tokens and
// recomputing the others.
// Source: "RWKV-7", arXiv 2503.14456, differentiated by hand.
#pragma once

#include <span>
#include <vector>

#include "sp_methods/kernels/reference/attention.hpp"

namespace baton {

/// The inputs of one head of a low-rank rule. States, such as of.initial_state, are [d_v, d_k].
struct LowRankReferenceInputs {
  ReferenceInputs of;
  std::span<const double> a, b;  ///< [tokens, d_k]
};

/// The gradients of one head of a low-rank rule; of.initial_state is [d_v, d_k].
struct LowRankReferenceGradients {
  ReferenceGradients of;
  std::vector<double> da, db;  ///< [tokens, d_k]
};

/// Runs the forward recurrence of a low-rank rule; final_state is [d_v, d_k].
ReferenceOutputs low_rank_reference_forward(const LowRankReferenceInputs& in, const LayerShape& shape);

/// Runs reverse mode for gradients d_o [tokens, d_v] and d_final_state [d_v, d_k], where an empty
/// one means zero.
LowRankReferenceGradients low_rank_reference_backward(const LowRankReferenceInputs& in,
                                                      std::span<const double> d_o,
                                                      std::span<const double> d_final_state,
                                                      const LayerShape& shape);

/// The matrix A [d_k, d_k], row-major, by which the tokens map a column of the state before them:
/// the product over tokens, the last one leftmost, of Diag(e^{g_t}) + b_t a_t^T.
/// q, v and the initial state are not read.
std::vector<double> low_rank_reference_matrix(const LowRankReferenceInputs& in, const LayerShape& shape);

}  // namespace baton
