// SPDX-License-Identifier: Apache-2.0
// The part of the output that comes from before each chunk: the rank's own states and earlier ranks' prefix.
//
//   for every head and chunk n:   S = states[n] + decays[n] (.) prefix      O += s (q (.) e^b) S
//
// All factors are <= 1, so any gate is safe.
// Cost: 2 d_k d_v flop a token and head; heads and chunks independent.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (chunkwise form);
// "ZeCO", arXiv 2507.01004.
#pragma once

#include "sp_methods/kernels/host/gla/chunk_states.hpp"

namespace baton {

/// Adds to o [tokens, heads, d_v] what comes from the states before each chunk; reads q and g.
void inter_output(float* o, const GlaInputs& in, const EdgeStates& before, const GlaShape& shape,
                  const Work& work = {});

/// Floating-point operations of inter_output.
double inter_output_flops(const GlaShape& shape);
/// Bytes inter_output must move: each input once, the output read and written.
double inter_output_bytes(const GlaShape& shape);

}  // namespace baton
