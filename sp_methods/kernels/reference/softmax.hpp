// SPDX-License-Identifier: Apache-2.0
// Causal softmax attention of one head over one whole sequence in double precision: the oracle.
//
//   P_t = softmax over u <= t of s q_t k_u         o_t = sum_u P_tu v_u
//   dP_tu = do_t . v_u,   dZ_tu = P_tu (dP_tu - sum_w P_tw dP_tw)
//   dq_t = s sum_u dZ_tu k_u,   dk_u = s sum_t dZ_tu q_t,   dv_u = sum_t P_tu do_t
//
// Cost: (d_k + d_v) tokens^2 flop forward, 5/2 of it backward; memory of one row of scores.
// Source: Vaswani et al., "Attention Is All You Need", 2017, equation 1, differentiated by hand.
#pragma once

#include "sp_methods/kernels/reference/gla.hpp"

namespace baton {

/// The output [tokens, d_v]; gates and initial state of `in` are not read.
std::vector<double> softmax_reference_forward(const ReferenceInputs& in, const GlaShape& shape);

/// The logarithm of every query's sum of exponentiated scores [tokens].
std::vector<double> softmax_reference_lse(const ReferenceInputs& in, const GlaShape& shape);

/// The gradients dq, dk, dv for the output's gradient d_o [tokens, d_v]; the other members stay
/// empty.
ReferenceGradients softmax_reference_backward(const ReferenceInputs& in, std::span<const double> d_o,
                                              const GlaShape& shape);

}  // namespace baton
