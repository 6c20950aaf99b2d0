// SPDX-License-Identifier: Apache-2.0
// The oracles of one head over a whole sequence in double precision: gated linear attention token
// by token, and below it softmax attention by blocks of queries.
//
// Columns of v and d_o have recurrences of their own: workers that take some columns each give
// those columns of o and dv, and dq, dk and dg as sums over workers.
//
//   forward:   S <- Diag(e^{g_t}) S + k_t^T v_t                 o_t = s q_t S
//   backward:  D <- D + s q_t^T do_t,   dq_t = s do_t S_t^T,    dk_t = v_t D^T,   dv_t = k_t D,
//              dg_t = rowsum(D (.) e^{g_t} S_{t-1}),            D <- Diag(e^{g_t}) D
//
// Cost: 5 tokens d_k d_v flop forward, 20 backward, keeping a state every sqrt(tokens) tokens and
// recomputing the others.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (recurrent form), differentiated
// by hand.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sp_methods/kernels/shape.hpp"

namespace baton {

/// The inputs of one head. shape.tokens is the whole sequence; shape.heads and shape.chunk are not
/// read.
struct ReferenceInputs {
  std::span<const double> q;              ///< [tokens, d_k]
  std::span<const double> k;              ///< [tokens, d_k]
  std::span<const double> v;              ///< [tokens, d_v]
  std::span<const double> g;              ///< Natural-log gates: [tokens, d_k], [tokens], or empty.
  std::span<const double> initial_state;  ///< [d_k, d_v]; empty means zero.
  std::uint64_t rounding = 0;             ///< The key of random roundings (roundings.hpp), or 0.
};

/// The outputs of one head of linear attention.
struct ReferenceOutputs {
  std::vector<double> o;            ///< [tokens, d_v]
  std::vector<double> final_state;  ///< [d_k, d_v]
};

/// The gradients of one head; dg is the gradient of the natural-log gate.
struct ReferenceGradients {
  std::vector<double> dq;             ///< [tokens, d_k]
  std::vector<double> dk;             ///< [tokens, d_k]
  std::vector<double> dv;             ///< [tokens, d_v]
  std::vector<double> dg;             ///< Shape of g; empty without gates.
  std::vector<double> initial_state;  ///< [d_k, d_v]
};

/// Runs the forward recurrence of gated linear attention in f64.
ReferenceOutputs gla_reference_forward(const ReferenceInputs& in, const LayerShape& shape);

/// Runs reverse mode for gradients d_o [tokens, d_v] and d_final_state [d_k, d_v], where an empty
/// one means zero.
ReferenceGradients gla_reference_backward(const ReferenceInputs& in, std::span<const double> d_o,
                                          std::span<const double> d_final_state, const LayerShape& shape);

// Softmax attention.
//
//   P_t = softmax over the keys u that t sees of s q_t k_u         o_t = sum_u P_tu v_u
//   dP_tu = do_t . v_u,   dZ_tu = P_tu (dP_tu - sum_w P_tw dP_tw)
//   dq_t = s sum_u dZ_tu k_u,   dk_u = s sum_t dZ_tu q_t,   dv_u = sum_t P_tu do_t
//
// Cost: (d_k + d_v) tokens^2 flop forward, 5/2 of it backward; memory of 64 rows of scores.
// Source: Vaswani et al., "Attention Is All You Need", 2017, equation 1, differentiated by hand.

/// The blocks of queries that one of several workers solves: every `parts`-th from `part` on. Rows
/// of other queries stay zero, and the sum over all parts is the whole result.
struct QueryTurn {
  std::int64_t part = 0;
  std::int64_t parts = 1;
};

/// The outputs of one head of softmax attention.
struct SoftmaxOutputs {
  std::vector<double> o;    ///< [tokens, d_v]
  std::vector<double> lse;  ///< The log of every query's sum of exponentiated scores [tokens].
};

/// The output and lse of softmax attention under `mask`, where every query sees a key; gates and
/// initial state of `in` are not read.
SoftmaxOutputs softmax_reference_forward(const ReferenceInputs& in, const LayerShape& shape,
                                         const QueryTurn& turn = {}, const Mask& mask = {});

/// The gradients dq, dk and dv for the gradient d_o [tokens, d_v] of the output; the other members
/// stay empty.
ReferenceGradients softmax_reference_backward(const ReferenceInputs& in, std::span<const double> d_o,
                                              const LayerShape& shape, const QueryTurn& turn = {},
                                              const Mask& mask = {});

}  // namespace baton
