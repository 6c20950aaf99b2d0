// SPDX-License-Identifier: Apache-2.0
// Bodies of causal attention within one run of tokens; see the header for the algorithm.
#include "sp_methods/kernels/host/gla/causal_block.hpp"

#include "sp_methods/kernels/host/score_tiles.hpp"

namespace baton {
namespace {

struct Halves {
  Tokens low, high;
};

Halves halves(Tokens t) {
  const Index low = t.count / 2;
  return {{t.first, low}, {t.first + low, t.count - low}};
}

/// Sets the decays of queries and keys of one run, both to its middle token; false where the guard fires.
bool set_leaf_decays(Tile& q_decay, Tile& k_decay, Tile& x, const GlaHead& in, Tokens t) {
  relative_gates(x, in.g(t), t.count / 2);
  if (!within_guard(x)) return false;
  set_decays(q_decay, x, 1.0F);
  k_decay = q_decay.cwiseInverse();
  return true;
}

/// Sets the decays of later queries and earlier keys to the edge between them; all are <= 1.
void set_rectangle_decays(Tile& q_decay, Tile& k_decay, Tile& x, const GlaHead& in, Tokens high, Tokens low) {
  relative_gates(x, in.g(high), -1);
  set_decays(q_decay, x, 1.0F);
  relative_gates(x, in.g(low), low.count - 1);
  set_decays(k_decay, x, -1.0F);
}

}  // namespace

void CausalOutput::add(Tokens t) {
  if (t.count <= leaf_ && set_leaf_decays(q_decay_, k_decay_, x_, in_, t)) {
    add_leaf(t);
    return;
  }
  const auto [low, high] = halves(t);
  add_rectangle(high, low);
  add(low);
  add(high);
}

void CausalOutput::add_leaf(Tokens t) {
  scale_rows(q_, in_.q(t), q_decay_);
  scale_rows(k_, in_.k(t), k_decay_);
  a_.noalias() = q_ * k_.transpose();
  a_.triangularView<Eigen::StrictlyUpper>().setZero();
  o(t).noalias() += in_.shape.scale() * (a_ * in_.v(t));
}

void CausalOutput::add_rectangle(Tokens high, Tokens low) {
  set_rectangle_decays(q_decay_, k_decay_, x_, in_, high, low);
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

void CausalGradients::add(Tokens t) {
  if (t.count <= leaf_ && set_leaf_decays(q_decay_, k_decay_, x_, in_, t)) {
    add_leaf(t);
    return;
  }
  const auto [low, high] = halves(t);
  add_rectangle(high, low);
  add(low);
  add(high);
}

void CausalGradients::add_leaf(Tokens t) {
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

void CausalGradients::add_rectangle(Tokens high, Tokens low) {
  set_rectangle_decays(q_decay_, k_decay_, x_, in_, high, low);
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
