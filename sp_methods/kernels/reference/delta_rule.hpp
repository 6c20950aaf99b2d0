// SPDX-License-Identifier: Apache-2.0
// The oracle of one head of linear attention with a delta rule over a whole sequence, token by
// token in double precision.
//
//   forward:    S' = Diag(e^{g_t}) S,   r = v_t - S'^T k_t,   vn = beta_t r
//               S <- S' + k_t vn^T,     o_t = s S^T q_t
//   backward:   D <- D + s q_t do_t^T,  dq_t = s S_t do_t,    dvn = D^T k_t
//               dk_t = D vn - beta_t S' dvn,   dv_t = beta_t dvn,   dbeta_t = dvn . r
//               D' = D - k_t dv_t^T,    dg_t = rowsum(D' (.) S'),   D <- Diag(e^{g_t}) D'
//
// Columns of v and d_o have recurrences of their own: workers that take some columns each, with the
// same rows of the states, give those columns of o and dv and those rows of the states, and dq, dk,
// dg and dbeta as sums over workers.
//
// Cost: 7 tokens d_k d_v flop forward, 30 backward, keeping a state every sqrt(tokens) tokens and
// recomputing the others.
// Source: "Gated Delta Networks", arXiv 2412.06464; "Kimi Linear", arXiv 2510.26692; differentiated
// by hand.
#pragma once

#include <span>
#include <vector>

#include "sp_methods/kernels/reference/attention.hpp"

namespace baton {

/// The inputs of one head of a delta rule. States, such as of.initial_state, are [d_v, d_k].
struct DeltaReferenceInputs {
  ReferenceInputs of;
  std::span<const double> beta;  ///< [tokens]
};

/// The gradients of one head of a delta rule; of.initial_state is [d_v, d_k].
struct DeltaReferenceGradients {
  ReferenceGradients of;
  std::vector<double> dbeta;  ///< [tokens]
};

/// Runs the forward recurrence of a delta rule; final_state is [d_v, d_k].
ReferenceOutputs delta_reference_forward(const DeltaReferenceInputs& in, const LayerShape& shape);

/// Runs reverse mode for gradients d_o [tokens, d_v] and d_final_state [d_v, d_k], where an empty
/// one means zero.
DeltaReferenceGradients delta_reference_backward(const DeltaReferenceInputs& in, std::span<const double> d_o,
                                                 std::span<const double> d_final_state,
                                                 const LayerShape& shape);

/// The matrix A [d_k, d_k], row-major, by which the tokens map a column of the state before them:
/// the product over tokens, the last one leftmost, of (I - beta_t k_t k_t^T) Diag(e^{g_t}).
/// q, v and the initial state are not read. Cost: 5 tokens d_k^2 flop.
std::vector<double> delta_reference_matrix(const DeltaReferenceInputs& in, const LayerShape& shape);

}  // namespace baton
