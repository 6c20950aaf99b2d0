// SPDX-License-Identifier: Apache-2.0
// One rank's states at its chunks' edges, in both directions, and the rank's affine map for the exchange.
//
//   gamma = e^{b_C}, the decay over a chunk
//   forward:   S = 0, G = 1; for chunk n = 0 .. N-1:  states[n] = S, decays[n] = G
//                            S = gamma (.) S + (k (.) e^{b_C - b})^T v,       G = gamma G
//              map = (G, S)
//   backward:  D = 0, G = 1; for chunk n = N-1 .. 0:  states[n] = D, decays[n] = G
//                            D = gamma (.) D + s (q (.) e^b)^T do,            G = gamma G
//              map = (G, D)
//
// All factors are <= 1, so any gate is safe. The true state at an edge is states[n] + decays[n] (.) incoming.
// Cost: 2 tokens heads d_k d_v flop, one state written a chunk; chunks in order, heads independent.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (chunkwise form);
// "ZeCO", arXiv 2507.01004.
#pragma once

#include "sp_methods/kernels/gla_shape.hpp"

namespace baton {

/// States at the chunk edges of one rank whose incoming state is zero, and the map of the whole rank. `heads` here and
/// in EdgeStates are those of the call: its first head comes first.
struct ChunkStates {
  float* states = nullptr;     ///< [heads, chunks, d_k, d_v]: before (backward: after) each chunk.
  float* decays = nullptr;     ///< [heads, chunks, d_k]: from the rank's edge to that place.
  float* map_decay = nullptr;  ///< [heads, d_k]: a_p, the decay over the whole rank.
  float* map_state = nullptr;  ///< [heads, d_k, d_v]: what the rank adds, S-_p (backward: D-_p).
};

/// True states at chunk edges, in parts: states[n] + decays[n] (.) incoming.
struct EdgeStates {
  const float* states = nullptr;    ///< [heads, chunks, d_k, d_v], from chunk_states.
  const float* decays = nullptr;    ///< [heads, chunks, d_k], from chunk_states.
  const float* incoming = nullptr;  ///< [heads, d_k, d_v], from other ranks; null means zero.
};

/// Forward state pass: reads k, v, g.
void chunk_states(const ChunkStates& out, const GlaInputs& in, const GlaShape& shape, const Work& work = {});

/// Backward state pass: reads q, g and the output's gradient d_o [tokens, heads, d_v].
void chunk_state_gradients(const ChunkStates& out, const GlaInputs& in, const float* d_o,
                           const GlaShape& shape, const Work& work = {});

/// Floating-point operations of either pass.
double chunk_states_flops(const GlaShape& shape);
double chunk_state_gradients_flops(const GlaShape& shape);
/// Bytes either pass must move: each input once, each result once.
double chunk_states_bytes(const GlaShape& shape);
double chunk_state_gradients_bytes(const GlaShape& shape);

}  // namespace baton
