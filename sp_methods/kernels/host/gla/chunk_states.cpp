// SPDX-License-Identifier: Apache-2.0
// Bodies of the two state passes: one loop, run over the chunks in either order.
#include "sp_methods/kernels/host/gla/chunk_states.hpp"

#include "sp_methods/kernels/host/gla/gates.hpp"
#include "sp_methods/kernels/host/parallel_for.hpp"

namespace baton {
namespace {

enum class Direction { forward, backward };

/// The outer product's operands of one pass over one head.
struct Pass {
  Direction direction;
  const float* left;   ///< [tokens, heads, d_k]: k forward, q backward.
  const float* right;  ///< [tokens, heads, d_v]: v forward, d_o backward.
  float scale;
};

/// Sets scaled to the left rows of a chunk, decayed to the chunk's edge that the pass is heading for.
void scale_left(Tile& scaled, Tile& x, Tile& factor, const GlaHead& in, const Pass& pass, Tokens t) {
  const bool forward = pass.direction == Direction::forward;
  relative_gates(x, in.g(t), forward ? t.count - 1 : -1);
  set_decays(factor, x, forward ? -1.0F : 1.0F);
  scale_rows(scaled, head_rows(pass.left, t, in.head, in.shape.heads, in.shape.d_k), factor);
}

/// One head; `place` is its number among the heads of the call.
void pass_states(const ChunkStates& out, const GlaHead& in, Index place, const Pass& pass) {
  const GlaShape& shape = in.shape;
  const Index chunks = shape.chunks();
  const bool forward = pass.direction == Direction::forward;
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

void pass_all_heads(const ChunkStates& out, const GlaInputs& in, const GlaShape& shape, const Work& work,
                    const Pass& pass) {
  parallel_for(work.heads(shape), work.threads, [&](Index first, Index last) {
    for (Index h = first; h < last; ++h) pass_states(out, {in, shape, work.first_head + h}, h, pass);
  });
}

double edge_elements(const GlaShape& shape) {
  const auto edges = static_cast<double>(shape.chunks() + 1);
  return edges * (shape.state_elements() + static_cast<double>(shape.heads * shape.d_k));
}

}  // namespace

void chunk_states(const ChunkStates& out, const GlaInputs& in, const GlaShape& shape, const Work& work) {
  pass_all_heads(out, in, shape, work, {Direction::forward, in.k, in.v, 1.0F});
}

void chunk_state_gradients(const ChunkStates& out, const GlaInputs& in, const float* d_o,
                           const GlaShape& shape, const Work& work) {
  pass_all_heads(out, in, shape, work, {Direction::backward, in.q, d_o, shape.scale()});
}

double chunk_states_flops(const GlaShape& shape) {
  return 2.0 * static_cast<double>(shape.tokens) * shape.state_elements();
}

double chunk_state_gradients_flops(const GlaShape& shape) { return chunk_states_flops(shape); }

double chunk_states_bytes(const GlaShape& shape) {
  const auto row = static_cast<double>(shape.d_k + shape.d_v + shape.gate_width());
  return 4.0 * (shape.rows() * row + edge_elements(shape));
}

double chunk_state_gradients_bytes(const GlaShape& shape) { return chunk_states_bytes(shape); }

}  // namespace baton
