// SPDX-License-Identifier: Apache-2.0
// The token oracles of linear attention share one head's rows, its state, and the walk back through
// states that a forward pass made.
//
//   forward:    keep the state before every run of sqrt(tokens) tokens
//   backward:   for every run, last to first: make its states again, then its tokens in reverse
//
// Cost: two forward passes and the reverse steps; memory of 2 sqrt(tokens) states.
// Source: "Training Deep Nets with Sublinear Memory Cost", arXiv 1604.06174 (kept states).
// Include it from .cpp files of this folder only.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "sp_methods/kernels/reference/roundings.hpp"
#include "sp_methods/kernels/shape.hpp"

namespace baton {

using OracleMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using OracleView = Eigen::Map<OracleMatrix>;
using ConstOracleView = Eigen::Map<const OracleMatrix>;
using OracleRow = Eigen::Map<const Eigen::ArrayXd>;
/// A state [d_k, d_v] by columns: a column's d_k numbers are contiguous, and each column has a
/// recurrence of its own.
using HeadState = Eigen::ArrayXXd;

inline std::span<double> numbers(HeadState& state) {
  return {state.data(), static_cast<std::size_t>(state.size())};
}

/// Resizes x to rows * cols zeros, and returns it as a matrix.
inline OracleView allocate(std::vector<double>& x, Eigen::Index rows, Eigen::Index cols) {
  x.assign(static_cast<std::size_t>(rows * cols), 0.0);
  return {x.data(), rows, cols};
}

/// The inputs of one head as matrices, one token a row.
struct OracleRows {
  /// Makes views of inputs such as those of attention.hpp.
  template <class Inputs>
  OracleRows(const Inputs& in, const LayerShape& shape)
      : tokens(shape.tokens),
        scale(1.0 / std::sqrt(static_cast<double>(shape.d_k))),
        q(in.q.data(), tokens, shape.d_k),
        k(in.k.data(), tokens, shape.d_k),
        v(in.v.data(), tokens, shape.d_v),
        g(in.g.data(), tokens, shape.gate_width()),
        roundings(in.rounding) {}

  /// Sets alpha to e^{g_t} [d_k] for every kind of gate.
  void set_alpha(Eigen::ArrayXd& alpha, Eigen::Index t) const {
    if (g.cols() == 0)
      alpha.setOnes(k.cols());
    else if (g.cols() == 1)
      alpha.setConstant(k.cols(), std::exp(g(t, 0)));
    else
      alpha = g.row(t).array().exp().transpose();
  }
  /// Row t of x as a column vector.
  static OracleRow row(const ConstOracleView& x, Eigen::Index t) {
    return {x.data() + t * x.cols(), x.cols()};
  }

  const Eigen::Index tokens;
  const double scale;
  const ConstOracleView q, k, v, g;
  mutable Roundings roundings;  // of states and their gradients
};

/// The gradients of one head's gates, set token by token from the last one on.
class GateGradients {
 public:
  GateGradients(std::vector<double>& dg, const OracleRows& rows)
      : roundings_(rows.roundings), dg_(allocate(dg, rows.tokens, rows.g.cols())) {
    sum_.setZero(rows.k.cols());
    squares_.setZero(rows.k.cols());
  }

  /// Adds the products [d_k] of a column of the state and its gradient.
  template <class Products>
  void add(const Products& products) {
    sum_ += products;
    if (roundings_.are_drawn()) squares_ += products.square();
  }
  /// Sets the gate gradients of token t to the sum since the last call. Roundings are of the
  /// products of all later tokens too, since methods add and subtract these.
  void set(Eigen::Index t) {
    if (dg_.cols() == 1) dg_(t, 0) = sum_.sum() + roundings_.of(std::sqrt(squares_.sum()));
    if (dg_.cols() > 1)
      for (Eigen::Index c = 0; c < dg_.cols(); ++c)
        dg_(t, c) = sum_(c) + roundings_.of(std::sqrt(squares_(c)));
    sum_.setZero();
  }

 private:
  Roundings& roundings_;
  OracleView dg_;
  Eigen::ArrayXd sum_, squares_;
};

/// Calls reverse(state before token t, t) for t = tokens - 1 .. 0, where step(after, before, t)
/// makes the state after token t; `after` and `before` may be the same.
template <class Step, class Reverse>
void walk_back(Eigen::Index tokens, HeadState state, const Step& step, const Reverse& reverse) {
  using Eigen::Index;
  const auto run = std::max<Index>(1, static_cast<Index>(std::sqrt(static_cast<double>(tokens))));
  std::vector<HeadState> before(static_cast<std::size_t>(run), state);
  std::vector<HeadState> kept;  // the state before every token whose number is a multiple of run
  for (Index t = 0; t < tokens; ++t) {
    if (t % run == 0) kept.push_back(state);
    step(state, state, t);
  }
  for (Index i = std::ssize(kept) - 1; i >= 0; --i) {
    const Index first = i * run, last = std::min(tokens, first + run);
    before[0] = kept[static_cast<std::size_t>(i)];
    for (Index t = first; t + 1 < last; ++t) {
      const auto at = static_cast<std::size_t>(t - first);
      step(before[at + 1], before[at], t);
    }
    for (Index t = last - 1; t >= first; --t) reverse(before[static_cast<std::size_t>(t - first)], t);
  }
}

/// The state by columns that has the memory of a state [d_v, d_k], values first; empty means zero.
inline HeadState head_state(std::span<const double> state, const LayerShape& shape) {
  if (state.empty()) return HeadState::Zero(shape.d_k, shape.d_v);
  return Eigen::Map<const HeadState>(state.data(), shape.d_k, shape.d_v);
}

/// The state [d_v, d_k], values first, of a state by columns.
inline std::vector<double> values_first(const HeadState& state) {
  return {state.data(), state.data() + state.size()};
}

/// Runs the forward recurrence of a rule with matrices from a state [d_v, d_k].
template <class Outputs, class Rule>
Outputs values_first_forward(Rule& rule, std::span<const double> initial, const LayerShape& shape) {
  Outputs out;
  OracleView o = allocate(out.o, rule.tokens, shape.d_v);
  HeadState state = head_state(initial, shape);
  for (Eigen::Index t = 0; t < rule.tokens; ++t) {
    rule.step(state, state, t);
    for (Eigen::Index j = 0; j < shape.d_v; ++j)
      o(t, j) = rule.scale * OracleRows::row(rule.q, t).matrix().dot(state.col(j).matrix());
  }
  out.final_state = values_first(state);
  return out;
}

/// Runs reverse mode of a rule with matrices for the gradient [d_v, d_k] of the state behind the
/// last token. `Reverse` writes to `Gradients`, whose `of.initial_state` has the gradient of the
/// initial state.
template <class Rule, class Reverse, class Gradients, class Inputs>
Gradients values_first_backward(const Inputs& in, std::span<const double> d_o,
                                std::span<const double> d_final_state, const LayerShape& shape) {
  Rule rule(in, shape);
  Gradients out;
  Reverse reverse(out, rule, d_o, head_state(d_final_state, shape));
  walk_back(
      rule.tokens, head_state(in.of.initial_state, shape),
      [&](HeadState& after, const HeadState& before, Eigen::Index t) { rule.step(after, before, t); },
      [&](const HeadState& before, Eigen::Index t) { reverse.step(before, t); });
  out.of.initial_state = values_first(reverse.gradient());
  return out;
}

/// The matrix [d_k, d_k], row-major, of a rule, which a layer without values gives for the identity
/// as its state.
template <class Rule, class Inputs>
std::vector<double> matrix_without_values(Inputs in, const LayerShape& shape) {
  LayerShape square = shape;
  square.d_v = shape.d_k;
  const std::vector<double> no_values(static_cast<std::size_t>(shape.tokens * shape.d_k), 0.0);
  in.of.v = no_values;
  Rule rule(in, square);
  HeadState state = HeadState::Zero(shape.d_k, shape.d_k);
  state.matrix().setIdentity();
  for (Eigen::Index t = 0; t < rule.tokens; ++t) rule.step(state, state, t);
  std::vector<double> matrix;
  allocate(matrix, shape.d_k, shape.d_k) = state.matrix();
  return matrix;
}

}  // namespace baton
