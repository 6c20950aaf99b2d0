// SPDX-License-Identifier: Apache-2.0
// What crosses the edges of chunks: the rank's own states and what other ranks handed in.
//
//   S = before.states[n] + before.decays[n] (.) prefix      O += s (q (.) e^b) S
//   D = after.states[n] + after.decays[n] (.) suffix
//   dq = s e^b (.) (dO S^T)      dk = e^{b_C - b} (.) (V D^T)      dv = (k (.) e^{b_C - b}) D
//   dg_i = gamma (.) rowsum(S (.) D) + sum_{u >= i} q_u dq_u + sum_{j < i} k_j dk_j
//
// dg has three kinds of pairs that pass gate i: over the whole chunk, into it, out of it. Written so, nothing cancels under
// strong gates; the rank's right edge needs no case of its own, since D there is the suffix.
// Cost: 2 d_k d_v flop a token and head forward, 6 d_k d_v backward; heads and chunks independent.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (chunkwise form), differentiated;
// "ZeCO", arXiv 2507.01004.
#include "sp_methods/kernels/gla_chunks.hpp"
#include "sp_methods/kernels/host/gla/gates.hpp"
#include "sp_methods/kernels/host/parallel_for.hpp"

namespace baton {
namespace {

using Edges = ChunkEdges<OnHost>;

/// Whether the state at the edge of chunk n may differ from zero; `first` is the rank's outermost chunk.
bool may_hold_state(const Edges& edge, Index n, Index first) {
  return edge.incoming != nullptr || n != first;
}

/// Sets state [d_k, d_v] to the true state at the edge of chunk n of one head.
void set_edge_state(Tile& state, const Edges& edge, const GlaShape& shape, Index head, Index n) {
  const Index place = head * shape.chunks() + n;
  const auto local = matrix_at(edge.states, place, shape.d_k, shape.d_v);
  if (edge.incoming == nullptr) {
    state = local;
    return;
  }
  const auto incoming = matrix_at(edge.incoming, head, shape.d_k, shape.d_v);
  const float* decay = edge.decays + place * shape.d_k;
  state.resize(shape.d_k, shape.d_v);
  for (Index i = 0; i < shape.d_k; ++i) state.row(i) = local.row(i) + decay[i] * incoming.row(i);
}

/// Adds the gradients of one chunk of one head after another, with scratch kept between chunks.
class CrossingGradients {
 public:
  CrossingGradients(const GlaGradients& out, const GlaInputs& in, const float* d_o, const GlaShape& shape)
      : out_(out), in_(in), d_o_(d_o), shape_(shape) {}

  /// Chunk n of `head`, which is number `place` among the heads of the call.
  void add(const Edges& before, const Edges& after, Index head, Index place, Index n) {
    const GlaHead rows{in_, shape_, head};
    const Tokens t = chunk_tokens(shape_, n);
    const bool from_before = may_hold_state(before, n, 0);
    const bool from_after = may_hold_state(after, n, shape_.chunks() - 1);
    relative_gates(x_, rows.g(t), -1);
    set_decays(decay_, x_, 1.0F);
    if (from_before) set_edge_state(state_, before, shape_, place, n);
    if (from_after) set_edge_state(gradient_, after, shape_, place, n);
    if (from_before && from_after) add_passing(rows, t);
    if (from_before) add_queries(rows, t);
    if (from_after) add_keys(rows, t);
  }

 private:
  TileView view(float* x, const GlaHead& rows, Tokens t, Index width) const {
    return head_rows(x, t, rows.head, shape_.heads, width);
  }

  /// Pairs over the whole chunk pass all its gates.
  void add_passing(const GlaHead& rows, Tokens t) {
    if (shape_.gate_width() == 0) return;
    const Eigen::RowVectorXf pairs = state_.cwiseProduct(gradient_).rowwise().sum();
    terms_.resize(t.count, shape_.d_k);
    if (shape_.gate_width() == 1) {
      terms_.rowwise() = decay_(t.count - 1, 0) * pairs;
    } else {
      terms_.rowwise() = decay_.row(t.count - 1).cwiseProduct(pairs);
    }
    add_gate_gradient(view(out_.dg, rows, t, shape_.gate_width()), terms_);
  }

  /// Queries against the state before the chunk pass the gates up to their own.
  void add_queries(const GlaHead& rows, Tokens t) {
    y_.noalias() = shape_.scale() * (view_of_d_o(rows, t) * state_.transpose());
    scale_rows(terms_, y_, decay_);
    view(out_.dq, rows, t, shape_.d_k) += terms_;
    if (shape_.gate_width() == 0) return;
    terms_.array() *= rows.q(t).array();
    suffix_sum(terms_);
    add_gate_gradient(view(out_.dg, rows, t, shape_.gate_width()), terms_);
  }

  /// Keys towards the state gradient after the chunk pass the gates behind their own.
  void add_keys(const GlaHead& rows, Tokens t) {
    relative_gates(x_, rows.g(t), t.count - 1);
    set_decays(decay_, x_, -1.0F);
    scale_rows(y_, rows.k(t), decay_);
    view(out_.dv, rows, t, shape_.d_v).noalias() += y_ * gradient_;
    y_.noalias() = rows.v(t) * gradient_.transpose();
    scale_rows(terms_, y_, decay_);
    view(out_.dk, rows, t, shape_.d_k) += terms_;
    if (shape_.gate_width() == 0) return;
    y_.row(0).setZero();
    for (Index i = 1; i < t.count; ++i) {
      y_.row(i) = y_.row(i - 1) + terms_.row(i - 1).cwiseProduct(rows.k(t).row(i - 1));
    }
    add_gate_gradient(view(out_.dg, rows, t, shape_.gate_width()), y_);
  }

  ConstTileView view_of_d_o(const GlaHead& rows, Tokens t) const {
    return head_rows(d_o_, t, rows.head, shape_.heads, shape_.d_v);
  }

  const GlaGradients& out_;
  const GlaInputs& in_;
  const float* d_o_;
  const GlaShape& shape_;
  Tile state_, gradient_, x_, decay_, y_, terms_;
};

}  // namespace

void InterOutput::on_host(const Operands<OnHost>& out, const Chunks& p) {
  const GlaShape& shape = p.shape;
  const Index chunks = shape.chunks();
  parallel_for(p.work.heads(shape) * chunks, p.work.threads, [&](Index first, Index last) {
    Tile x, decay, q, state;
    for (Index i = first; i < last; ++i) {
      const GlaHead head{out.in, shape, p.work.first_head + i / chunks};
      const Index n = i % chunks;
      if (!may_hold_state(out.before, n, 0)) continue;
      const Tokens t = chunk_tokens(shape, n);
      relative_gates(x, head.g(t), -1);
      set_decays(decay, x, 1.0F);
      scale_rows(q, head.q(t), decay);
      set_edge_state(state, out.before, shape, i / chunks, n);
      head_rows(out.o, t, head.head, shape.heads, shape.d_v).noalias() += shape.scale() * (q * state);
    }
  });
}

void InterGradients::on_host(const Operands<OnHost>& x, const Chunks& p) {
  const Index chunks = p.shape.chunks();
  parallel_for(p.work.heads(p.shape) * chunks, p.work.threads, [&](Index first, Index last) {
    CrossingGradients gradients(x.out, x.in, x.d_o, p.shape);
    for (Index i = first; i < last; ++i)
      gradients.add(x.before, x.after, p.work.first_head + i / chunks, i / chunks, i % chunks);
  });
}

}  // namespace baton
