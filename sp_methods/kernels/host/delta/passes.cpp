// SPDX-License-Identifier: Apache-2.0
// The passes over one rank's chunks under a delta rule that make its map, its output, the operator
// that corrects the output, and its part of the state's gradient.
//
//   for chunk n = 0 .. N-1:   R = missing(X),  Vn = B R,  [O = output(X, Vn)],  X = advance(X, Vn)
//       map:          X = [0; I] with values v and none:  X at the end is [B; A^T]
//       output:       X = the incoming state, values v
//       correction:   X = I, no values:  O is the correction
//   for chunk n = N-1 .. 0:   D = 0;  Z = reverse(s Aqk^T dO + K^ D^T),  D = retreat(D, dO, B Z)
//       state gradients:  D at the end
//
// So the matrix A is a state of d_k more rows that starts from the identity, and no chunk's matrix
// is formed.
// Cost: that of the contracts; chunks in order, heads independent.
// Source: "Gated Delta Networks", arXiv 2412.06464; the columns from the identity as in
// flash-linear-attention, ops/cp.
#include <utility>

#include "sp_methods/kernels/delta_contracts.hpp"
#include "sp_methods/kernels/host/delta/chunk.hpp"

namespace baton {
namespace {

/// The output of one head's chunks from state x [width, d_k], with values of `value_width` columns,
/// into o [tokens, heads, width].
void set_output(float* o, Tile x, const DeltaHead& head, Index value_width) {
  const Index width = x.rows();
  DeltaChunk chunk(head, true);
  Tile written;
  walk_chunks(head.shape, x, [&](Index n) {
    chunk.set(n);
    chunk.set_missing(written, x, head.of().v(chunk.tokens).leftCols(value_width));
    written = chunk.beta.asDiagonal() * written;
    chunk.set_output(head_rows(o, chunk.tokens, head.head, head.shape.heads, width), x, written);
    chunk.advance(x, written);
  });
}

}  // namespace

void DeltaMap::on_host(const Operands<OnHost>& out, const Chunks& p) {
  const Index d_k = p.shape.d_k, state_rows = out.map_state == nullptr ? 0 : p.shape.d_v;
  const Index matrix_rows = out.map_matrix == nullptr ? 0 : d_k;
  for_heads<DeltaHead>(out.in, p, [&](const DeltaHead& head, Index h) {
    DeltaChunk chunk(head, false);
    Tile x = Tile::Zero(state_rows + matrix_rows, d_k), written;
    x.bottomRows(matrix_rows).setIdentity();
    walk_chunks(p.shape, x, [&](Index n) {
      chunk.set(n);
      chunk.set_missing(written, x, head.of().v(chunk.tokens).leftCols(state_rows));
      written = chunk.beta.asDiagonal() * written;
      chunk.advance(x, written);
    });
    if (state_rows > 0) matrix_at(out.map_state, h, state_rows, d_k) = x.topRows(state_rows);
    if (matrix_rows > 0) matrix_at(out.map_matrix, h, d_k, d_k) = x.bottomRows(d_k).transpose();
  });
}

void DeltaOutput::on_host(const Operands<OnHost>& out, const Chunks& p) {
  for_heads<DeltaHead>(out.in, p, [&](const DeltaHead& head, Index h) {
    set_output(out.o, state_or_zero(out.incoming, h, p.shape), head, p.shape.d_v);
  });
}

void DeltaCorrection::on_host(const Operands<OnHost>& out, const Chunks& p) {
  for_heads<DeltaHead>(out.in, p, [&](const DeltaHead& head, Index) {
    set_output(out.correction, Tile::Identity(p.shape.d_k, p.shape.d_k), head, 0);
  });
}

void DeltaCorrect::on_host(const Operands<OnHost>& out, const Chunks& p) {
  if (out.incoming == nullptr) return;
  const GlaShape& s = p.shape;
  parallel_for(p.work.heads(s) * s.chunks(), p.work.threads, [&](Index first, Index last) {
    for (Index i = first; i < last; ++i) {
      const Tokens t = chunk_tokens(s, i % s.chunks());
      const Index h = i / s.chunks(), head = p.work.first_head + h;
      head_rows(out.o, t, head, s.heads, s.d_v).noalias() +=
          head_rows(out.correction, t, head, s.heads, s.d_k) *
          matrix_at(out.incoming, h, s.d_v, s.d_k).transpose();
    }
  });
}

void DeltaStateGradients::on_host(const Operands<OnHost>& out, const Chunks& p) {
  const GlaShape& s = p.shape;
  for_heads<DeltaHead>(out.in, p, [&](const DeltaHead& head, Index h) {
    DeltaChunk chunk(head, true);
    Tile gradient = Tile::Zero(s.d_v, s.d_k), dv;
    walk_chunks_back(s, gradient, [&](Index n) {
      chunk.set(n);
      const auto d_o = head_rows(out.d_o, chunk.tokens, head.head, s.heads, s.d_v);
      chunk.set_written_gradient(dv, d_o, gradient);
      chunk.solve_reverse(dv);
      dv = chunk.beta.asDiagonal() * dv;
      chunk.retreat(gradient, d_o, dv);
    });
    matrix_at(out.map_state, h, s.d_v, s.d_k) = gradient;
  });
}

}  // namespace baton
