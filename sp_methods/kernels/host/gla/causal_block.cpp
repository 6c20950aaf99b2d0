// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/host/gla/causal_block.hpp"

#include "sp_methods/kernels/host/products.hpp"

namespace baton {

/// Sets the decays of queries and keys of one run, relative to its middle token. Returns false if a
/// log decay is too large for within_guard.
bool CausalBlock::set_leaf_decays(Tokens t) {
  relative_gates(x_, in_.g(t), t.count / 2);
  if (!within_guard(x_)) return false;
  set_decays(q_decay_, x_, 1.0F);
  k_decay_ = q_decay_.cwiseInverse();
  return true;
}

/// Sets the decays of later queries and earlier keys to the edge between them, all <= 1.
void CausalBlock::set_rectangle_decays(Tokens high, Tokens low) {
  relative_gates(x_, in_.g(high), -1);
  set_decays(q_decay_, x_, 1.0F);
  relative_gates(x_, in_.g(low), low.count - 1);
  set_decays(k_decay_, x_, -1.0F);
}

void CausalBlock::add(Tokens t) {
  if (t.count <= leaf_ && set_leaf_decays(t)) return add_leaf(t);
  const Tokens low{t.first, t.count / 2}, high{t.first + low.count, t.count - low.count};
  set_rectangle_decays(high, low);
  add_rectangle(high, low);
  add(low);
  add(high);
}

void CausalOutput::add_leaf(Tokens t) {
  scale_rows(q_, in_.q(t), q_decay_);
  scale_rows(k_, in_.k(t), k_decay_);
  set_product(a_, q_, transposed(k_));
  a_.triangularView<Eigen::StrictlyUpper>().setZero();
  add_product(o(t), a_, in_.v(t), in_.shape.scale());
}

void CausalOutput::add_rectangle(Tokens high, Tokens low) {
  scale_rows(q_, in_.q(high), q_decay_);
  scale_rows(k_, in_.k(low), k_decay_);
  add_left_product(o(high), q_, k_, in_.v(low), in_.shape.scale());
}

void CausalGradients::set(Tokens t) {
  origin_ = t.first;
  dq_.setZero(t.count, in_.shape.d_k);
  dk_.setZero(t.count, in_.shape.d_k);
  dv(t).setZero();
  add(t);
  if (in_.shape.gate_width() > 0) set_gate_gradient(t);
  set_with_diagonal(t);
}

void CausalGradients::add_leaf(Tokens t) {
  const float s = in_.shape.scale();
  scale_rows(q_, in_.q(t), q_decay_);
  scale_rows(k_, in_.k(t), k_decay_);
  set_product(a_, q_, transposed(k_));
  a_.triangularView<Eigen::StrictlyUpper>().setZero();
  add_product(dv(t), transposed(a_), d_o(t), s);
  set_product(a_, d_o(t), transposed(in_.v(t)));
  a_.triangularView<Eigen::Upper>().setZero();
  set_product(y_, a_, k_, s);
  add_scaled_rows(dq_.middleRows(t.first - origin_, t.count), y_, q_decay_);
  set_product(y_, transposed(a_), q_, s);
  add_scaled_rows(dk_.middleRows(t.first - origin_, t.count), y_, k_decay_);
}

void CausalGradients::add_rectangle(Tokens high, Tokens low) {
  scale_rows(q_, in_.q(high), q_decay_);
  scale_rows(k_, in_.k(low), k_decay_);
  y_.setZero(high.count, in_.shape.d_k);
  z_.setZero(low.count, in_.shape.d_k);
  add_left_product_gradients({y_, z_, dv(low)}, q_, k_, in_.v(low), d_o(high), in_.shape.scale());
  add_scaled_rows(dq_.middleRows(high.first - origin_, high.count), y_, q_decay_);
  add_scaled_rows(dk_.middleRows(low.first - origin_, low.count), z_, k_decay_);
}

void CausalGradients::set_gate_gradient(Tokens t) {
  y_ = in_.q(t).cwiseProduct(dq_) - in_.k(t).cwiseProduct(dk_);
  suffix_sum(y_);
  auto dg = head_rows(out_.dg, t, in_.head, in_.shape.heads, in_.shape.gate_width());
  dg.setZero();
  add_gate_gradient(dg, y_);
}

void CausalGradients::set_with_diagonal(Tokens t) {
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
