// SPDX-License-Identifier: Apache-2.0
// The part of the gradients that crosses chunk edges, from the state before a chunk and its gradient after.
//
//   S = before.states[n] + before.decays[n] (.) prefix
//   D = after.states[n] + after.decays[n] (.) suffix
//   dq = s e^b (.) (dO S^T)      dk = e^{b_C - b} (.) (V D^T)      dv = (k (.) e^{b_C - b}) D
//   dg_i = gamma (.) rowsum(S (.) D) + sum_{u >= i} q_u dq_u + sum_{j < i} k_j dk_j
//
// dg has three kinds of pairs that pass gate i: over the whole chunk, into it, out of it. Written so, nothing
// cancels under strong gates; the rank's right edge needs no case of its own, since D there is the suffix.
// Cost: 6 d_k d_v flop a token and head; heads and chunks independent.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (chunkwise form), differentiated;
// "ZeCO", arXiv 2507.01004.
#pragma once

#include "sp_methods/kernels/host/gla/chunk_states.hpp"

namespace baton {

/// Adds to the gradients what crosses chunk edges: `before` is from chunk_states with the prefix of earlier
/// ranks, `after` from chunk_state_gradients with the suffix of later ranks; d_o [tokens, heads, d_v].
void inter_gradients(const GlaGradients& out, const GlaInputs& in, const float* d_o, const EdgeStates& before,
                     const EdgeStates& after, const GlaShape& shape, const Work& work = {});

/// Floating-point operations of inter_gradients.
double inter_gradients_flops(const GlaShape& shape);
/// Bytes inter_gradients must move: each input once, each gradient read and written.
double inter_gradients_bytes(const GlaShape& shape);

}  // namespace baton
