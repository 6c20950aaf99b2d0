// SPDX-License-Identifier: Apache-2.0
// One rank's states at its chunks' edges, in both directions, and the rank's affine map for the
// exchange.
//
//   gamma = e^{b_C}, the decay over a chunk
//   forward:   S = 0, G = 1; for chunk n = 0 .. N-1:  states[n] = S, decays[n] = G
//                            S = gamma (.) S + (k (.) e^{b_C - b})^T v,       G = gamma G
//              map = (G, S)
//   backward:  D = 0, G = 1; for chunk n = N-1 .. 0:  states[n] = D, decays[n] = G
//                            D = gamma (.) D + s (q (.) e^b)^T do,            G = gamma G
//              map = (G, D)
//
// Where a packed document starts with chunk n, S and G are zero before it, and behind it backward
// (after n is done). All factors are <= 1, so any gate is safe.
// Cost: 2 tokens heads d_k d_v flop, one state written a chunk; chunks in order, heads independent.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (chunkwise form); "ZeCO", arXiv
// 2507.01004.
#include "sp_methods/kernels/gla_chunks.hpp"

#include "sp_methods/kernels/host/gla/causal_block.hpp"
#include "sp_methods/kernels/host/gla/gates.hpp"
#include "sp_methods/kernels/host/products.hpp"

namespace baton {
namespace {

/// The operands of the outer products of one pass over a head: k and v forward, q and d_o backward.
struct StatePass {
  bool forward;
  const float* left;   ///< [tokens, heads, d_k]: k forward, q backward.
  const float* right;  ///< [tokens, heads, d_v]: v forward, d_o backward.
  float scale;
};

/// Sets scaled to the left rows of a chunk, decayed to the edge of the chunk where the pass leaves
/// it.
void scale_left(Tile& scaled, Tile& x, Tile& factor, const GlaHead& in, const StatePass& pass, Tokens t) {
  relative_gates(x, in.g(t), pass.forward ? t.count - 1 : -1);
  set_decays(factor, x, pass.forward ? -1.0F : 1.0F);
  scale_rows(scaled, head_rows(pass.left, t, in.head, in.shape.heads, in.shape.d_k), factor);
}

/// Writes the states at the edges of one head's chunks, and the head's map. `place` is the head's
/// number in this call.
template <class Out>
void pass_states(const Out& out, const GlaHead& in, Index place, const StatePass& pass) {
  const LayerShape& shape = in.shape;
  const Index chunks = shape.chunks();
  const bool forward = pass.forward;
  Tile x, factor, scaled;
  Eigen::ArrayXd from_edge = Eigen::ArrayXd::Zero(shape.d_k);
  Eigen::ArrayXd gate(shape.d_k);
  Eigen::Map<Eigen::ArrayXXf> decays(out.decays + place * chunks * shape.d_k, shape.d_k, chunks);
  if (chunks == 0)  // a rank without tokens adds nothing
    matrix_at(out.map_state, place, shape.d_k, shape.d_v).setZero();
  else
    matrix_at(out.states, place * chunks + (forward ? 0 : chunks - 1), shape.d_k, shape.d_v).setZero();
  bool is_cut = false;  // a document starts between the rank's edge and here
  const auto outer_decay = [&]() -> Eigen::ArrayXf {
    return is_cut ? Eigen::ArrayXf::Zero(shape.d_k) : decay_of(from_edge);
  };
  for (Index step = 0; step < chunks; ++step) {
    const Index n = forward ? step : chunks - 1 - step;
    const Tokens t = chunk_tokens(shape, n);
    auto state = matrix_at(out.states, place * chunks + n, shape.d_k, shape.d_v);
    if (forward && shape.starts_document(n)) state.setZero(), is_cut = true;
    decays.col(n) = outer_decay();
    add_total_gate(gate.setZero(), in.g(t));
    from_edge += gate;
    scale_left(scaled, x, factor, in, pass, t);
    auto next = step + 1 == chunks
                    ? matrix_at(out.map_state, place, shape.d_k, shape.d_v)
                    : matrix_at(out.states, place * chunks + n + (forward ? 1 : -1), shape.d_k, shape.d_v);
    next = decay_of(gate).matrix().asDiagonal() * state;
    add_product(next, transposed(scaled), head_rows(pass.right, t, in.head, shape.heads, shape.d_v),
                pass.scale);
    if (!forward && shape.starts_document(n)) next.setZero(), is_cut = true;
  }
  Eigen::Map<Eigen::ArrayXf>(out.map_decay + place * shape.d_k, shape.d_k) = outer_decay();
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

// What stays within chunks: it needs no state, so it runs beside the exchange.
//
//   for every head and chunk, A = s tril(Q K^T (.) decays), dA = s tril(dO V^T):
//     O = A V          dV = A^T dO
//     dq_i = sum_j dA_ij k_j e^{b_i - b_j}      dk_j = sum_i dA_ij q_i e^{b_i - b_j}
//     dg_i = sum_{u >= i} (q_u dq_u - k_u dk_u), the diagonal left out of dq and dk here
//
// Cost: 2 chunk (d_k + d_v) flop a token and head forward (a full square a chunk), chunk (6 d_k + 4
// d_v) backward; heads and chunks independent.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (chunkwise form), differentiated.

void IntraOutput::on_host(const Operands<OnHost>& x, const Chunks& p) {
  const LayerShape& shape = p.shape;
  const Index chunks = shape.chunks();
  parallel_for(p.work.heads(shape) * chunks, p.work.threads, [&](Index first, Index last) {
    for (Index i = first; i < last;) {
      const Index head = p.work.first_head + i / chunks;
      CausalOutput block(x.o, {x.in, shape, head}, shape.chunk);
      for (const Index stop = std::min(last, (i / chunks + 1) * chunks); i < stop; ++i) {
        const Tokens t = chunk_tokens(shape, i % chunks);
        head_rows(x.o, t, head, shape.heads, shape.d_v).setZero();
        block.add(t);
      }
    }
  });
}

void IntraGradients::on_host(const Operands<OnHost>& x, const Chunks& p) {
  const LayerShape& shape = p.shape;
  const Index chunks = shape.chunks();
  parallel_for(p.work.heads(shape) * chunks, p.work.threads, [&](Index first, Index last) {
    for (Index i = first; i < last;) {
      CausalGradients block(x.out, {x.in, shape, p.work.first_head + i / chunks}, x.d_o, shape.chunk);
      for (const Index stop = std::min(last, (i / chunks + 1) * chunks); i < stop; ++i) {
        block.set(chunk_tokens(shape, i % chunks));
      }
    }
  });
}

// What crosses the edges of chunks: the rank's own states and what other ranks handed in.
//
//   S = before.states[n] + before.decays[n] (.) prefix      O += s (q (.) e^b) S
//   D = after.states[n] + after.decays[n] (.) suffix
//   dq = s e^b (.) (dO S^T)      dk = e^{b_C - b} (.) (V D^T)      dv = (k (.) e^{b_C - b}) D
//   dg_i = gamma (.) rowsum(S (.) D) + sum_{u >= i} q_u dq_u + sum_{j < i} k_j dk_j
//
// dg has three kinds of pairs that pass gate i: over the whole chunk, into it, out of it. Written
// so, nothing cancels under strong gates; the rank's right edge needs no case of its own, since D
// there is the suffix.
// Cost: 2 d_k d_v flop a token and head forward, 6 d_k d_v backward; heads and chunks independent.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (chunkwise form), differentiated;
// "ZeCO", arXiv 2507.01004.

namespace {

using Edges = ChunkEdges<OnHost>;

/// True if the state at the edge of chunk n may differ from zero, where `first` is the outermost
/// chunk of the rank.
bool may_hold_state(const Edges& edge, Index n, Index first) {
  return edge.incoming != nullptr || n != first;
}

/// Sets state [d_k, d_v] to the true state at the edge of chunk n of one head.
void set_edge_state(Tile& state, const Edges& edge, const LayerShape& shape, Index head, Index n) {
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

/// Adds the gradients that cross the edges of one chunk, with scratch memory that is kept between
/// chunks.
class CrossingGradients {
 public:
  CrossingGradients(const GlaGradients& out, const GlaInputs& in, const float* d_o, const LayerShape& shape)
      : out_(out), in_(in), d_o_(d_o), shape_(shape) {}

  /// Adds the gradients of chunk n of `head`, which is number `place` among the heads of the call.
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

  /// Adds the gate gradients of pairs before and behind the chunk, which pass all its gates.
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

  /// Adds dq, and the gate gradients of the queries with the state before the chunk.
  void add_queries(const GlaHead& rows, Tokens t) {
    set_product(y_, view_of_d_o(rows, t), transposed(state_), shape_.scale());
    scale_rows(terms_, y_, decay_);
    view(out_.dq, rows, t, shape_.d_k) += terms_;
    if (shape_.gate_width() == 0) return;
    terms_.array() *= rows.q(t).array();
    suffix_sum(terms_);
    add_gate_gradient(view(out_.dg, rows, t, shape_.gate_width()), terms_);
  }

  /// Adds dk, dv, and the gate gradients of the keys with the state gradient behind the chunk.
  void add_keys(const GlaHead& rows, Tokens t) {
    relative_gates(x_, rows.g(t), t.count - 1);
    set_decays(decay_, x_, -1.0F);
    scale_rows(y_, rows.k(t), decay_);
    add_product(view(out_.dv, rows, t, shape_.d_v), y_, gradient_);
    set_product(y_, rows.v(t), transposed(gradient_));
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
  const LayerShape& shape_;
  Tile state_, gradient_, x_, decay_, y_, terms_;
};

}  // namespace

void InterOutput::on_host(const Operands<OnHost>& out, const Chunks& p) {
  const LayerShape& shape = p.shape;
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
      add_product(head_rows(out.o, t, head.head, shape.heads, shape.d_v), q, state, shape.scale());
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
