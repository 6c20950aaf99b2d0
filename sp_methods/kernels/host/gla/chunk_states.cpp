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
// All factors are <= 1, so any gate is safe.
// Cost: 2 tokens heads d_k d_v flop, one state written a chunk; chunks in order, heads independent.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (chunkwise form); "ZeCO", arXiv 2507.01004.
#include "sp_methods/kernels/gla_chunks.hpp"
#include "sp_methods/kernels/host/gla/gates.hpp"
#include "sp_methods/kernels/host/parallel_for.hpp"

namespace baton {
namespace {

/// The outer product's operands of one pass over one head.
struct StatePass {
  bool forward;
  const float* left;   ///< [tokens, heads, d_k]: k forward, q backward.
  const float* right;  ///< [tokens, heads, d_v]: v forward, d_o backward.
  float scale;
};

/// Sets scaled to the left rows of a chunk, decayed to the chunk's edge that the pass is heading for.
void scale_left(Tile& scaled, Tile& x, Tile& factor, const GlaHead& in, const StatePass& pass, Tokens t) {
  relative_gates(x, in.g(t), pass.forward ? t.count - 1 : -1);
  set_decays(factor, x, pass.forward ? -1.0F : 1.0F);
  scale_rows(scaled, head_rows(pass.left, t, in.head, in.shape.heads, in.shape.d_k), factor);
}

/// One head; `place` is its number among the heads of the call.
template <class Out>
void pass_states(const Out& out, const GlaHead& in, Index place, const StatePass& pass) {
  const GlaShape& shape = in.shape;
  const Index chunks = shape.chunks();
  const bool forward = pass.forward;
  Tile x, factor, scaled;
  Eigen::ArrayXd from_edge = Eigen::ArrayXd::Zero(shape.d_k);
  Eigen::ArrayXd gate(shape.d_k);
  Eigen::Map<Eigen::ArrayXXf> decays(out.decays + place * chunks * shape.d_k, shape.d_k, chunks);
  matrix_at(out.states, place * chunks + (forward ? 0 : chunks - 1), shape.d_k, shape.d_v).setZero();
  for (Index step = 0; step < chunks; ++step) {
    const Index n = forward ? step : chunks - 1 - step;
    const Tokens t = chunk_tokens(shape, n);
    decays.col(n) = decay_of(from_edge);
    add_total_gate(gate.setZero(), in.g(t));
    from_edge += gate;
    scale_left(scaled, x, factor, in, pass, t);
    const auto state = matrix_at(out.states, place * chunks + n, shape.d_k, shape.d_v);
    auto next = step + 1 == chunks
                    ? matrix_at(out.map_state, place, shape.d_k, shape.d_v)
                    : matrix_at(out.states, place * chunks + n + (forward ? 1 : -1), shape.d_k, shape.d_v);
    next = decay_of(gate).matrix().asDiagonal() * state;
    next.noalias() +=
        pass.scale * (scaled.transpose() * head_rows(pass.right, t, in.head, shape.heads, shape.d_v));
  }
  Eigen::Map<Eigen::ArrayXf>(out.map_decay + place * shape.d_k, shape.d_k) = decay_of(from_edge);
}

template <class Out>
void pass_all_heads(const Out& out, const Chunks& p, const StatePass& pass) {
  parallel_for(p.work.heads(p.shape), p.work.threads, [&](Index first, Index last) {
    for (Index h = first; h < last; ++h) pass_states(out, {out.in, p.shape, p.work.first_head + h}, h, pass);
  });
}

}  // namespace

void ChunkStates::on_host(const Operands<OnHost>& x, const Chunks& p) {
  pass_all_heads(x, p, {true, x.in.k, x.in.v, 1.0F});
}

void ChunkStateGradients::on_host(const Operands<OnHost>& x, const Chunks& p) {
  pass_all_heads(x, p, {false, x.in.q, x.d_o, p.shape.scale()});
}

}  // namespace baton
