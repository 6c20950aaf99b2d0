// SPDX-License-Identifier: Apache-2.0
// Body of the gradients that cross chunk edges; see the header for the algorithm.
#include "sp_methods/kernels/host/gla/inter_gradients.hpp"

#include "sp_methods/kernels/host/gla/edge_state.hpp"
#include "sp_methods/kernels/host/gla/gates.hpp"
#include "sp_methods/kernels/host/parallel_for.hpp"

namespace baton {
namespace {

/// Adds the gradients of one chunk of one head after another, with scratch kept between chunks.
class InterGradients {
 public:
  InterGradients(const GlaGradients& out, const GlaInputs& in, const float* d_o, const GlaShape& shape)
      : out_(out), in_(in), d_o_(d_o), shape_(shape) {}

  /// Chunk n of `head`, which is number `place` among the heads of the call.
  void add(const EdgeStates& before, const EdgeStates& after, Index head, Index place, Index n) {
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

void inter_gradients(const GlaGradients& out, const GlaInputs& in, const float* d_o, const EdgeStates& before,
                     const EdgeStates& after, const GlaShape& shape, const Work& work) {
  const Index chunks = shape.chunks();
  parallel_for(work.heads(shape) * chunks, work.threads, [&](Index first, Index last) {
    InterGradients gradients(out, in, d_o, shape);
    for (Index i = first; i < last; ++i)
      gradients.add(before, after, work.first_head + i / chunks, i / chunks, i % chunks);
  });
}

double inter_gradients_flops(const GlaShape& shape) {
  return 6.0 * static_cast<double>(shape.tokens) * shape.state_elements();
}

double inter_gradients_bytes(const GlaShape& shape) {
  const auto row = static_cast<double>(6 * shape.d_k + 4 * shape.d_v + 3 * shape.gate_width());
  const auto edges = static_cast<double>(2 * shape.chunks()) *
                     (shape.state_elements() + static_cast<double>(shape.heads * shape.d_k));
  return 4.0 * (shape.rows() * row + edges + 2.0 * shape.state_elements());
}

}  // namespace baton
