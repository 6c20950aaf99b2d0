// SPDX-License-Identifier: Apache-2.0
// The part of the output that stays within chunks: it needs no state, so it runs beside the exchange.
//
//   for every head and chunk:   O = s tril(Q K^T (.) decays) V
//
// Cost: 2 chunk (d_k + d_v) flop a token and head (a full square a chunk); heads and chunks independent.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (chunkwise form).
#pragma once

#include "sp_methods/kernels/gla_shape.hpp"

namespace baton {

/// Sets o [tokens, heads, d_v] to the output that comes from keys of the same chunk; reads q, k, v, g.
void intra_output(float* o, const GlaInputs& in, const GlaShape& shape, const Work& work = {});

/// Floating-point operations of intra_output.
double intra_output_flops(const GlaShape& shape);
/// Bytes intra_output must move: each input once, the result once.
double intra_output_bytes(const GlaShape& shape);

}  // namespace baton
