// SPDX-License-Identifier: Apache-2.0
// The gradients of one rank's inputs under a delta rule, from the state before it and the gradient
// of the state behind it.
//
//   for chunk n = 0 .. N-1:   keep X_n = X;  keep R = missing(X);  X = advance(X, B R)
//   for chunk n = N-1 .. 0, with X = X_n, Vn = B R and D behind the chunk:
//     Z = reverse(s Aqk^T dO + K^ D^T)           dv = B Z           dbeta = rowsum(Z (.) R)
//     dAqk = s tril(dO Vn^T)                     dG = -tril_{-1}(dv Vn^T)
//     dQ~ = s dO X        dK~ = -dv X            dK^ = Vn D         D <- retreat(D, dO, dv)
//     dq = e^b dQ~ + pairs(dAqk)                 dk = e^b dK~ + e^{b_C - b} dK^ + pairs(dAqk, dG)
//     dg_i = gamma (.) colsum(X (.) D) + sum_{u >= i} (q_u dq_u + k_u dk_u of later tokens of pairs
//            - k_u dk_u of earlier tokens of pairs) + sum_{u < i} k_u e^{b_C - b_u} dK^_u
//
// dg has four kinds of pairs that pass gate i: over the whole chunk, into it, out of it and within
// it. Written so, what passes no gate i is in none of them, and nothing cancels under strong gates.
// Where keys repeat, the first sum is made from states of single tokens (gate_sums.hpp).
// (The gradient of the WY form's W and U falls out: dW = -dVn X, so both meet in Z.)
// Cost: that of the contract; a state kept a chunk; chunks in order, heads independent.
// Source: "Gated Delta Networks", arXiv 2412.06464 (chunkwise form), differentiated.
#include "sp_methods/kernels/delta.hpp"

#include <vector>

#include "sp_methods/kernels/host/delta/chunk.hpp"
#include "sp_methods/kernels/host/gla/gate_sums.hpp"
#include "sp_methods/kernels/host/matrix_rule.hpp"

namespace baton {
namespace {

/// The gradients of one head, with scratch memory that is kept between chunks.
class HeadGradients {
 public:
  HeadGradients(const DeltaGradientsOut<OnHost>& out, const DeltaHead& head, const float* d_o)
      : out_(out), head_(head), d_o_(d_o), chunk_(head, {.queries = true}), pairs_(head.of()) {}

  /// Runs the forward pass from state x [d_v, d_k], and keeps the states before all chunks.
  void keep_states(Tile x) {
    DeltaChunk chunk(head_, {});
    missing_.resize(head_.shape.chunks());
    walk_chunks(head_.shape, x, [&](Index n) {
      chunk.set(n);
      Tile& missing = missing_[n];
      const auto v = head_.of().v(chunk.tokens);
      chunk.set_missing(missing, x, v);
      states_.push_back(x);
      written_.noalias() = chunk.beta.asDiagonal() * missing;
      chunk.advance(x, written_, v);
    });
  }

  /// Sets the gradients of chunk n and moves `gradient` [d_v, d_k] from behind it to before it.
  void set(Tile& gradient, Index n) {
    chunk_.set(n);
    const Tile& state = states_[n];
    written_.noalias() = chunk_.beta.asDiagonal() * missing_[n];
    set_writes(gradient, missing_[n]);
    set_pairs();
    set_edges(gradient, state);
    if (head_.shape.gate_width() > 0) set_gates(gradient, state);
    set_rows();
    chunk_.retreat(gradient, d_o(), dv_);
  }

 private:
  /// Sets dv and dbeta.
  void set_writes(const Tile& gradient, const Tile& missing) {
    chunk_.set_written_gradient(dv_, d_o(), gradient);
    chunk_.solve_reverse(dv_);
    view(out_.dbeta, 1).col(0) = dv_.cwiseProduct(missing).rowwise().sum();
    dv_ = chunk_.beta.asDiagonal() * dv_;
    view(out_.of.dv, head_.shape.d_v) = dv_;
  }

  /// Sets the gradients from pairs of tokens within the chunk, without the diagonal.
  void set_pairs() {
    set_product(pairs_.d_queries, d_o(), transposed(written_), head_.shape.scale());
    own_ = pairs_.d_queries.diagonal();
    pairs_.d_queries.triangularView<Eigen::Upper>().setZero();
    set_product(pairs_.d_keys, dv_, transposed(written_), -1);
    pairs_.d_keys.triangularView<Eigen::Upper>().setZero();
    for (Tile* rows : {&pairs_.dq, &pairs_.later_dk, &pairs_.earlier_dk})
      rows->setZero(chunk_.tokens.count, head_.shape.d_k);
    pairs_.add_pairs(chunk_.tokens);
  }

  /// Adds the gradients from the state before the chunk, and keeps those from the state behind it.
  void set_edges(const Tile& gradient, const Tile& state) {
    set_product(x_, d_o(), state, head_.shape.scale());
    add_scaled_rows(pairs_.dq, x_, chunk_.from_start);
    set_product(x_, dv_, state, -1);
    add_scaled_rows(pairs_.later_dk, x_, chunk_.from_start);
    set_product(x_, written_, gradient);
    scale_rows(out_dk_, x_, chunk_.to_end);
  }

  void set_gates(const Tile& gradient, const Tile& state) {
    const auto q = head_.of().q(chunk_.tokens), k = head_.of().k(chunk_.tokens);
    if (repeats_keys(chunk_.tokens.count, head_.shape.d_k)) {
      set_gate_sums(sums_, head_.of().g(chunk_.tokens), state,
                    {{q, d_o(), head_.shape.scale()}, {k, dv_, -1}}, {{k, written_}});
      x_ = sums_.cast<float>();
    } else {
      x_ = q.cwiseProduct(pairs_.dq) + k.cwiseProduct(pairs_.later_dk - pairs_.earlier_dk);
      suffix_sum(x_);
    }
    set_chunk_gate_gradient(view(out_.of.dg, head_.shape.gate_width()), x_,
                            chunk_.gamma.cwiseProduct(state.cwiseProduct(gradient).colwise().sum()),
                            k.cwiseProduct(out_dk_));
  }

  /// Sets dq and dk, with the diagonal of the scores.
  void set_rows() {
    const auto q = head_.of().q(chunk_.tokens), k = head_.of().k(chunk_.tokens);
    view(out_.of.dq, head_.shape.d_k) = pairs_.dq + own_.asDiagonal() * k;
    view(out_.of.dk, head_.shape.d_k) = pairs_.later_dk + pairs_.earlier_dk + out_dk_ + own_.asDiagonal() * q;
  }

  TileView view(float* x, Index width) const {
    return head_rows(x, chunk_.tokens, head_.head, head_.shape.heads, width);
  }
  ConstTileView d_o() const {
    return head_rows(d_o_, chunk_.tokens, head_.head, head_.shape.heads, head_.shape.d_v);
  }

  const DeltaGradientsOut<OnHost>& out_;
  DeltaHead head_;
  const float* d_o_;
  DeltaChunk chunk_;
  ChunkScoreGradients pairs_;
  std::vector<Tile> states_, missing_;  // of every chunk
  Tile written_, dv_, out_dk_, x_;
  ExactTile sums_;
  Eigen::VectorXf own_;
};

}  // namespace

void DeltaMap::on_host(const Operands<OnHost>& out, const Chunks& p) { set_map<DeltaChunk>(out, p); }
void DeltaOutput::on_host(const Operands<OnHost>& out, const Chunks& p) { set_output<DeltaChunk>(out, p); }
void DeltaCorrection::on_host(const Operands<OnHost>& out, const Chunks& p) {
  set_correction<DeltaChunk>(out, p);
}

void DeltaCorrect::on_host(const Operands<OnHost>& out, const Chunks& p) {
  if (out.incoming == nullptr) return;
  const LayerShape& s = p.shape;
  parallel_for(p.work.heads(s) * s.chunks(), p.work.threads, [&](Index first, Index last) {
    for (Index i = first; i < last; ++i) {
      const Tokens t = chunk_tokens(s, i % s.chunks());
      const Index h = i / s.chunks(), head = p.work.first_head + h;
      add_product(head_rows(out.o, t, head, s.heads, s.d_v),
                  head_rows(out.correction, t, head, s.heads, s.d_k),
                  transposed(matrix_at(out.incoming, h, s.d_v, s.d_k)));
    }
  });
}

void DeltaStateGradients::on_host(const Operands<OnHost>& out, const Chunks& p) {
  set_state_gradients<DeltaChunk>(out, p);
}
void DeltaGradients::on_host(const Operands<OnHost>& x, const Chunks& p) {
  set_gradients_of_heads<DeltaHead, HeadGradients>(x, p);
}

}  // namespace baton
