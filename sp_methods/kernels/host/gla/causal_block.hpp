// SPDX-License-Identifier: Apache-2.0
// Causal attention within one run of tokens of one head, without a state, for gates of any
// strength.
//
//   add(run):  if the run fits a leaf and |b - r| < guard over it, r being b at its middle:
//                  O += s tril((q e^{b-r}) (k e^{r-b})^T) V     masked by selection: may be inf
//              else cut it into halves L, H with r = b at the end of L:
//                  O_H += s (q_H e^{b-r}) (k_L e^{r-b})^T V_L     both factors <= 1
//                  add(L), add(H)
//
// A single token always fits, so no gate is too strong: the fallback is the same form on smaller
// blocks. Backward keeps the diagonal apart: a token's own product passes no gate and would only
// cancel in dg.
// Cost: 2 n^2 (d_k + d_v) flop forward, n^2 (6 d_k + 4 d_v) backward for a leaf of n tokens; long
// runs half.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (secondary-level chunking),
// made recursive.
#pragma once

#include "sp_methods/kernels/host/gla/gates.hpp"
#include "sp_methods/kernels/host/tiles.hpp"

namespace baton {

/// Halves runs of tokens of one head until they can be computed as leaves.
class CausalBlock {
 public:
  virtual ~CausalBlock() = default;

  /// Adds the contributions of pairs of tokens in `t`.
  void add(Tokens t);

 protected:
  /// Runs longer than `leaf` tokens are halved.
  CausalBlock(const GlaHead& in, Index leaf) : in_(in), leaf_(leaf) {}

  /// Adds all pairs of a short run; q_decay_ and k_decay_ are set.
  virtual void add_leaf(Tokens t) = 0;
  /// Adds the pairs of later queries `high` with earlier keys `low`; q_decay_ and k_decay_ are set.
  virtual void add_rectangle(Tokens high, Tokens low) = 0;

  GlaHead in_;
  Tile q_decay_, k_decay_, q_, k_, a_;

 private:
  bool set_leaf_decays(Tokens t);
  void set_rectangle_decays(Tokens high, Tokens low);

  Index leaf_;
  Tile x_;
};

/// Adds the output of causal pairs to o [tokens, heads, d_v].
class CausalOutput : public CausalBlock {
 public:
  CausalOutput(float* o, const GlaHead& in, Index leaf) : CausalBlock(in, leaf), o_(o) {}

 private:
  void add_leaf(Tokens t) override;
  void add_rectangle(Tokens high, Tokens low) override;
  TileView o(Tokens t) const { return head_rows(o_, t, in_.head, in_.shape.heads, in_.shape.d_v); }

  float* o_;
};

/// Writes the gradients of causal pairs.
class CausalGradients : private CausalBlock {
 public:
  /// Gradients `out` are for the gradient d_o [tokens, heads, d_v] of the output.
  CausalGradients(const GlaGradients& out, const GlaHead& in, const float* d_o, Index leaf)
      : CausalBlock(in, leaf), out_(out), d_o_(d_o) {}

  /// Sets the gradients of the tokens in `t` to the contributions of pairs within `t`.
  void set(Tokens t);

 private:
  void add_leaf(Tokens t) override;
  void add_rectangle(Tokens high, Tokens low) override;
  void set_gate_gradient(Tokens t);
  void set_with_diagonal(Tokens t);
  TileView dv(Tokens t) const { return head_rows(out_.dv, t, in_.head, in_.shape.heads, in_.shape.d_v); }
  ConstTileView d_o(Tokens t) const { return head_rows(d_o_, t, in_.head, in_.shape.heads, in_.shape.d_v); }

  GlaGradients out_;
  const float* d_o_;
  Index origin_ = 0;  // first token of dq_ and dk_
  Tile dq_, dk_;      // of the run, without the diagonal
  Tile y_, z_;
};

/// Sets the decays of queries and keys of one run, relative to its middle token. Returns false if a
/// log decay is too large for within_guard.
inline bool CausalBlock::set_leaf_decays(Tokens t) {
  relative_gates(x_, in_.g(t), t.count / 2);
  if (!within_guard(x_)) return false;
  set_decays(q_decay_, x_, 1.0F);
  k_decay_ = q_decay_.cwiseInverse();
  return true;
}

/// Sets the decays of later queries and earlier keys to the edge between them, all <= 1.
inline void CausalBlock::set_rectangle_decays(Tokens high, Tokens low) {
  relative_gates(x_, in_.g(high), -1);
  set_decays(q_decay_, x_, 1.0F);
  relative_gates(x_, in_.g(low), low.count - 1);
  set_decays(k_decay_, x_, -1.0F);
}

inline void CausalBlock::add(Tokens t) {
  if (t.count <= leaf_ && set_leaf_decays(t)) return add_leaf(t);
  const Tokens low{t.first, t.count / 2}, high{t.first + low.count, t.count - low.count};
  set_rectangle_decays(high, low);
  add_rectangle(high, low);
  add(low);
  add(high);
}

inline void CausalOutput::add_leaf(Tokens t) {
  scale_rows(q_, in_.q(t), q_decay_);
  scale_rows(k_, in_.k(t), k_decay_);
  a_.noalias() = q_ * k_.transpose();
  a_.triangularView<Eigen::StrictlyUpper>().setZero();
  o(t).noalias() += in_.shape.scale() * (a_ * in_.v(t));
}

inline void CausalOutput::add_rectangle(Tokens high, Tokens low) {
  scale_rows(q_, in_.q(high), q_decay_);
  scale_rows(k_, in_.k(low), k_decay_);
  add_left_product(o(high), q_, k_, in_.v(low), in_.shape.scale());
}

inline void CausalGradients::set(Tokens t) {
  origin_ = t.first;
  dq_.setZero(t.count, in_.shape.d_k);
  dk_.setZero(t.count, in_.shape.d_k);
  dv(t).setZero();
  add(t);
  if (in_.shape.gate_width() > 0) set_gate_gradient(t);
  set_with_diagonal(t);
}

inline void CausalGradients::add_leaf(Tokens t) {
  const float s = in_.shape.scale();
  scale_rows(q_, in_.q(t), q_decay_);
  scale_rows(k_, in_.k(t), k_decay_);
  a_.noalias() = q_ * k_.transpose();
  a_.triangularView<Eigen::StrictlyUpper>().setZero();
  dv(t).noalias() += s * (a_.transpose() * d_o(t));
  a_.noalias() = d_o(t) * in_.v(t).transpose();
  a_.triangularView<Eigen::Upper>().setZero();
  y_.noalias() = s * (a_ * k_);
  add_scaled_rows(dq_.middleRows(t.first - origin_, t.count), y_, q_decay_);
  y_.noalias() = s * (a_.transpose() * q_);
  add_scaled_rows(dk_.middleRows(t.first - origin_, t.count), y_, k_decay_);
}

inline void CausalGradients::add_rectangle(Tokens high, Tokens low) {
  scale_rows(q_, in_.q(high), q_decay_);
  scale_rows(k_, in_.k(low), k_decay_);
  y_.setZero(high.count, in_.shape.d_k);
  z_.setZero(low.count, in_.shape.d_k);
  add_left_product_gradients({y_, z_, dv(low)}, q_, k_, in_.v(low), d_o(high), in_.shape.scale());
  add_scaled_rows(dq_.middleRows(high.first - origin_, high.count), y_, q_decay_);
  add_scaled_rows(dk_.middleRows(low.first - origin_, low.count), z_, k_decay_);
}

inline void CausalGradients::set_gate_gradient(Tokens t) {
  y_ = in_.q(t).cwiseProduct(dq_) - in_.k(t).cwiseProduct(dk_);
  suffix_sum(y_);
  auto dg = head_rows(out_.dg, t, in_.head, in_.shape.heads, in_.shape.gate_width());
  dg.setZero();
  add_gate_gradient(dg, y_);
}

inline void CausalGradients::set_with_diagonal(Tokens t) {
  const auto q = in_.q(t), k = in_.k(t);
  const Eigen::VectorXf own = in_.shape.scale() * d_o(t).cwiseProduct(in_.v(t)).rowwise().sum();
  auto dq = head_rows(out_.dq, t, in_.head, in_.shape.heads, in_.shape.d_k);
  auto dk = head_rows(out_.dk, t, in_.head, in_.shape.heads, in_.shape.d_k);
  for (Index i = 0; i < t.count; ++i) {
    dq.row(i) = dq_.row(i) + own(i) * k.row(i);
    dk.row(i) = dk_.row(i) + own(i) * q.row(i);
  }
}

}  // namespace baton
