// SPDX-License-Identifier: Apache-2.0
// The gradients of one rank's inputs under a low-rank rule, from the state before it and the
// gradient of the state behind it.
//
//   for chunk n = 0 .. N-1:   keep X_n = X;  keep U = read(X);  X = advance(X, U)
//   for chunk n = N-1 .. 0, with X = X_n, U kept and D behind the chunk:
//     Z = reverse(dO, D)                         dv = K^ D^T + s Aqv^T dO + Arv^T Z
//     dAqv = s tril(dO V^T)                      dAqb = s tril(dO U^T)
//     dArv = tril_{-1}(Z V^T)                    dArb = tril_{-1}(Z U^T)
//     dq = e^c s dO X + pairs                    dr = e^c Z X + pairs,  da = e^{-g} dr
//     dk = e^{c_C - c} V D + pairs               db = e^{c_C - c} U D + pairs
//     dg_i = gamma (.) colsum(X (.) D) + sum_{u >= i} q_u dq_u + sum_{u > i} a_u da_u
//            - sum_{u >= i} (k_u dk_u + b_u db_u of pairs) + sum_{u < i} (k_u dk_u + b_u db_u of D)
//     D <- retreat(D, dO, Z)
//
// A token reads before its own gate, so a_u da_u counts for the gates before u alone. Two kinds of
// pairs pass no gate: a token's query and its own write, and a token's read and the write of the
// token before it. They would only cancel in dg, where they are e^{-g} times as large as all else,
// and are left out of it.
// Cost: that of the contract; a state kept a chunk; chunks in order, heads independent.
// Source: "RWKV-7", arXiv 2503.14456 (chunkwise form), differentiated.
#include "sp_methods/kernels/low_rank.hpp"

#include <vector>

#include "sp_methods/kernels/host/gla/gate_sums.hpp"
#include "sp_methods/kernels/host/low_rank/chunk.hpp"
#include "sp_methods/kernels/host/matrix_rule.hpp"

namespace baton {
namespace {

/// The gradients of one head, with scratch memory that is kept between chunks.
class HeadGradients {
 public:
  HeadGradients(const LowRankGradientsOut<OnHost>& out, const LowRankHead& head, const float* d_o)
      : out_(out), head_(head), d_o_(d_o), chunk_(head, {true, true}), pairs_(head) {}

  /// Runs the forward pass from state x [d_v, d_k], and keeps the states before all chunks.
  void keep_states(Tile x) {
    LowRankChunk chunk(head_, {false, true});
    read_.resize(head_.shape.chunks());
    walk_chunks(head_.shape, x, [&](Index n) {
      chunk.set(n);
      const auto v = head_.of().v(chunk.tokens);
      states_.push_back(x);
      chunk.set_read(read_[n], x, v);
      chunk.advance(x, read_[n], v);
    });
  }

  /// Sets the gradients of chunk n and moves `gradient` [d_v, d_k] from behind it to before it.
  void set(Tile& gradient, Index n) {
    chunk_.set(n);
    chunk_.set_read_gradient(z_, d_o(), gradient);
    chunk_.set_value_gradient(view(out_.of.dv, head_.shape.d_v), d_o(), gradient, z_);
    set_pairs(read_[n]);
    set_edges(gradient, states_[n], read_[n]);
    if (head_.shape.gate_width() > 0) set_gates(gradient, states_[n], read_[n]);
    set_rows();
    chunk_.retreat(gradient, d_o(), z_);
  }

 private:
  /// Sets the gradients from pairs of tokens within the chunk that pass a gate.
  void set_pairs(const Tile& read) {
    const float s = head_.shape.scale();
    const auto v = head_.of().v(chunk_.tokens);
    set_product(pairs_.query_values, d_o(), transposed(v), s);
    set_product(pairs_.query_writes, d_o(), transposed(read), s);
    set_product(pairs_.read_values, z_, transposed(v));
    set_product(pairs_.read_writes, z_, transposed(read));
    own_value_ = pairs_.query_values.diagonal();
    own_write_ = pairs_.query_writes.diagonal();
    next_value_ = pairs_.read_values.diagonal(-1);
    next_write_ = pairs_.read_writes.diagonal(-1);
    for (Tile* scores :
         {&pairs_.query_values, &pairs_.query_writes, &pairs_.read_values, &pairs_.read_writes})
      scores->triangularView<Eigen::Upper>().setZero();
    for (Tile* scores : {&pairs_.read_values, &pairs_.read_writes}) scores->diagonal(-1).setZero();
    for (Tile* rows : {&pairs_.dq, &pairs_.d_reads, &pairs_.dk, &pairs_.db})
      rows->setZero(chunk_.tokens.count, head_.shape.d_k);
    pairs_.add_pairs(chunk_.tokens, chunk_.reads);
  }

  /// Adds the gradients from the state before the chunk, and keeps those from the state behind it.
  void set_edges(const Tile& gradient, const Tile& state, const Tile& read) {
    set_product(x_, d_o(), state, head_.shape.scale());
    add_scaled_rows(pairs_.dq, x_, chunk_.from_start);
    set_product(x_, z_, state);
    add_scaled_rows(pairs_.d_reads, x_, chunk_.from_start);
    set_product(x_, head_.of().v(chunk_.tokens), gradient);
    scale_rows(out_dk_, x_, chunk_.to_end);
    set_product(x_, read, gradient);
    scale_rows(out_db_, x_, chunk_.to_end);
  }

  void set_gates(const Tile& gradient, const Tile& state, const Tile& read) {
    const auto q = head_.of().q(chunk_.tokens), k = head_.of().k(chunk_.tokens), b = head_.b(chunk_.tokens);
    const Index last = chunk_.tokens.count - 1;
    if (repeats_keys(chunk_.tokens.count, head_.shape.d_k)) {
      // A token's read passes the gates that a query of the token before it would pass.
      set_gate_sums(
          sums_, head_.of().g(chunk_.tokens), state,
          {{q, d_o(), head_.shape.scale()}, {head_.a(chunk_.tokens).bottomRows(last), z_.bottomRows(last)}},
          {{k, head_.of().v(chunk_.tokens)}, {b, read}});
      x_ = sums_.cast<float>();
    } else {
      x_ = q.cwiseProduct(pairs_.dq) - k.cwiseProduct(pairs_.dk) - b.cwiseProduct(pairs_.db);
      x_.topRows(last) += chunk_.reads.bottomRows(last).cwiseProduct(pairs_.d_reads.bottomRows(last));
      suffix_sum(x_);
    }
    set_chunk_gate_gradient(view(out_.of.dg, head_.shape.gate_width()), x_,
                            chunk_.gamma.cwiseProduct(state.cwiseProduct(gradient).colwise().sum()),
                            k.cwiseProduct(out_dk_) + b.cwiseProduct(out_db_));
  }

  /// Sets the gradients of rows, with the pairs that pass no gate.
  void set_rows() {
    const auto q = head_.of().q(chunk_.tokens), k = head_.of().k(chunk_.tokens), a = head_.a(chunk_.tokens),
               b = head_.b(chunk_.tokens);
    const Index d_k = head_.shape.d_k, last = chunk_.tokens.count - 1;
    auto dk = view(out_.of.dk, d_k), db = view(out_.db, d_k), da = view(out_.da, d_k);
    view(out_.of.dq, d_k) = pairs_.dq + own_value_.asDiagonal() * k + own_write_.asDiagonal() * b;
    dk = pairs_.dk + out_dk_ + own_value_.asDiagonal() * q;
    dk.topRows(last) += next_value_.asDiagonal() * a.bottomRows(last);
    db = pairs_.db + out_db_ + own_write_.asDiagonal() * q;
    db.topRows(last) += next_write_.asDiagonal() * a.bottomRows(last);
    scale_rows(x_, pairs_.d_reads, chunk_.before_gate);
    da = x_;
    da.bottomRows(last) += next_value_.asDiagonal() * k.topRows(last);
    da.bottomRows(last) += next_write_.asDiagonal() * b.topRows(last);
  }

  TileView view(float* x, Index width) const {
    return head_rows(x, chunk_.tokens, head_.head, head_.shape.heads, width);
  }
  ConstTileView d_o() const {
    return head_rows(d_o_, chunk_.tokens, head_.head, head_.shape.heads, head_.shape.d_v);
  }

  const LowRankGradientsOut<OnHost>& out_;
  LowRankHead head_;
  const float* d_o_;
  LowRankChunk chunk_;
  LowRankScoreGradients pairs_;
  std::vector<Tile> states_, read_;  // of every chunk
  Tile z_, out_dk_, out_db_, x_;
  ExactTile sums_;
  Eigen::VectorXf own_value_, own_write_;    // of a token's query
  Eigen::VectorXf next_value_, next_write_;  // of the next token's read
};

}  // namespace

void LowRankMap::on_host(const Operands<OnHost>& out, const Chunks& p) { set_map<LowRankChunk>(out, p); }
void LowRankOutput::on_host(const Operands<OnHost>& out, const Chunks& p) {
  set_output<LowRankChunk>(out, p);
}
void LowRankCorrection::on_host(const Operands<OnHost>& out, const Chunks& p) {
  set_correction<LowRankChunk>(out, p);
}
void LowRankStateGradients::on_host(const Operands<OnHost>& out, const Chunks& p) {
  set_state_gradients<LowRankChunk>(out, p);
}
void LowRankGradients::on_host(const Operands<OnHost>& x, const Chunks& p) {
  set_gradients_of_heads<LowRankHead, HeadGradients>(x, p);
}

}  // namespace baton
