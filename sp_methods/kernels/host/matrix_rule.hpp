// SPDX-License-Identifier: Apache-2.0
// The passes over one rank's chunks under a rule with matrices that make its map, its output, the
// operator that corrects the output, and its part of the state's gradient. A `Chunk` is the form of
// a chunk under the rule (delta/chunk.hpp, low_rank/chunk.hpp).
//
//   for chunk n = 0 .. N-1:   U = read(X),  [O = output(X, U)],  X = advance(X, U)
//       map:          X = [0; I] with values v and none:  X at the end is [B; A^T]
//       output:       X = the incoming state, values v
//       correction:   X = I, no values:  O is the correction
//   for chunk n = N-1 .. 0:   D = 0;  Z = reverse(dO, D),  D = retreat(D, dO, Z)
//       state gradients:  D at the end
//
// So the matrix A is a state of d_k more rows that starts from the identity, and no chunk's matrix
// is formed.
// Cost: that of the contracts; chunks in order, heads independent.
// Source: the columns from the identity as in flash-linear-attention, ops/cp.
#pragma once

#include "sp_methods/kernels/gla_chunks.hpp"
#include "sp_methods/kernels/host/tiles.hpp"

namespace baton {

/// Sets the map of a rank's tokens, for the operands of DeltaMap or LowRankMap.
template <class Chunk, class Operands>
void set_map(const Operands& out, const Chunks& p) {
  const Index d_k = p.shape.d_k, state_rows = out.map_state == nullptr ? 0 : p.shape.d_v;
  const Index matrix_rows = out.map_matrix == nullptr ? 0 : d_k;
  for_heads<typename Chunk::Head>(out.in, p, [&](const auto& head, Index h) {
    Chunk chunk(head, {.queries = false, .values = state_rows > 0});
    Tile x = Tile::Zero(state_rows + matrix_rows, d_k), read;
    x.bottomRows(matrix_rows).setIdentity();
    walk_chunks(p.shape, x, [&](Index n) {
      chunk.set(n);
      const auto v = head.of().v(chunk.tokens).leftCols(state_rows);
      chunk.set_read(read, x, v);
      chunk.advance(x, read, v);
    });
    if (state_rows > 0) matrix_at(out.map_state, h, state_rows, d_k) = x.topRows(state_rows);
    if (matrix_rows > 0) matrix_at(out.map_matrix, h, d_k, d_k) = x.bottomRows(d_k).transpose();
  });
}

/// Writes the output of one head's chunks from state x [width, d_k] into o [tokens, heads, width],
/// with all values or none.
template <class Chunk>
void set_output_of_head(float* o, Tile x, const typename Chunk::Head& head, bool has_values) {
  const Index width = x.rows();
  Chunk chunk(head, {.queries = true, .values = has_values});
  Tile read;
  walk_chunks(head.shape, x, [&](Index n) {
    chunk.set(n);
    const auto v = head.of().v(chunk.tokens).leftCols(has_values ? width : 0);
    chunk.set_read(read, x, v);
    chunk.set_output(head_rows(o, chunk.tokens, head.head, head.shape.heads, width), x, read, v);
    chunk.advance(x, read, v);
  });
}

/// Sets o, for the operands of DeltaOutput or LowRankOutput.
template <class Chunk, class Operands>
void set_output(const Operands& out, const Chunks& p) {
  for_heads<typename Chunk::Head>(out.in, p, [&](const auto& head, Index h) {
    set_output_of_head<Chunk>(out.o, state_or_zero(out.incoming, h, p.shape), head, true);
  });
}

/// Sets the correction, for the operands of DeltaCorrection or LowRankCorrection.
template <class Chunk, class Operands>
void set_correction(const Operands& out, const Chunks& p) {
  for_heads<typename Chunk::Head>(out.in, p, [&](const auto& head, Index) {
    set_output_of_head<Chunk>(out.correction, Tile::Identity(p.shape.d_k, p.shape.d_k), head, false);
  });
}

/// Sets the gradient of the state before the rank, for the operands of DeltaStateGradients or
/// LowRankStateGradients.
template <class Chunk, class Operands>
void set_state_gradients(const Operands& out, const Chunks& p) {
  const LayerShape& s = p.shape;
  for_heads<typename Chunk::Head>(out.in, p, [&](const auto& head, Index h) {
    Chunk chunk(head, {.queries = true, .values = false});
    Tile gradient = Tile::Zero(s.d_v, s.d_k), z;
    walk_chunks_back(s, gradient, [&](Index n) {
      chunk.set(n);
      const auto d_o = head_rows(out.d_o, chunk.tokens, head.head, s.heads, s.d_v);
      chunk.set_read_gradient(z, d_o, gradient);
      chunk.retreat(gradient, d_o, z);
    });
    matrix_at(out.map_state, h, s.d_v, s.d_k) = gradient;
  });
}

}  // namespace baton
