// SPDX-License-Identifier: Apache-2.0
// The oracles of gated linear and of softmax attention, token by token in double precision.
#include "sp_methods/kernels/reference/attention.hpp"

#include <Eigen/Core>
#include <cmath>

namespace baton {
namespace {

using Eigen::Index;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<Matrix>;
using ConstView = Eigen::Map<const Matrix>;

/// The inputs as matrices, one token a row.
class Recurrence {
 public:
  Recurrence(const ReferenceInputs& in, const GlaShape& shape)
      : tokens(shape.tokens),
        scale(1.0 / std::sqrt(static_cast<double>(shape.d_k))),
        q(in.q.data(), tokens, shape.d_k),
        k(in.k.data(), tokens, shape.d_k),
        v(in.v.data(), tokens, shape.d_v),
        g(in.g.data(), tokens, shape.gate_width()),
        initial_(in.initial_state) {}

  Matrix initial_state() const {
    if (initial_.empty()) return Matrix::Zero(k.cols(), v.cols());
    return ConstView(initial_.data(), k.cols(), v.cols());
  }

  /// e^{g_t} [d_k], whatever the kind of gate.
  Eigen::VectorXd alpha(Index t) const {
    if (g.cols() == 0) return Eigen::VectorXd::Ones(k.cols());
    if (g.cols() == 1) return Eigen::VectorXd::Constant(k.cols(), std::exp(g(t, 0)));
    return g.row(t).array().exp().matrix().transpose();
  }

  void step(Matrix& state, Index t) const {
    state = alpha(t).asDiagonal() * state;
    state.noalias() += k.row(t).transpose() * v.row(t);
  }

  const Index tokens;
  const double scale;
  const ConstView q, k, v, g;

 private:
  std::span<const double> initial_;
};

/// The gradients as matrices over vectors of the right size.
struct GradientRows {
  explicit GradientRows(ReferenceGradients& out, const Recurrence& r)
      : dq(allocate(out.dq, r.tokens, r.k.cols())),
        dk(allocate(out.dk, r.tokens, r.k.cols())),
        dv(allocate(out.dv, r.tokens, r.v.cols())),
        dg(allocate(out.dg, r.tokens, r.g.cols())) {}

  static View allocate(std::vector<double>& x, Index rows, Index cols) {
    x.resize(static_cast<std::size_t>(rows * cols));
    return {x.data(), rows, cols};
  }

  View dq, dk, dv, dg;
};

/// One reverse step over token t, from the state before it; D is the gradient of the state after
/// it.
void reverse_step(GradientRows& out, Matrix& gradient, const Recurrence& r, const Matrix& before,
                  const ConstView& d_o, Index t) {
  Matrix state = before;
  r.step(state, t);
  gradient.noalias() += r.scale * (r.q.row(t).transpose() * d_o.row(t));
  out.dq.row(t).noalias() = r.scale * (d_o.row(t) * state.transpose());
  out.dk.row(t).noalias() = r.v.row(t) * gradient.transpose();
  out.dv.row(t).noalias() = r.k.row(t) * gradient;
  gradient = r.alpha(t).asDiagonal() * gradient;
  const Eigen::RowVectorXd dg = gradient.cwiseProduct(before).rowwise().sum();
  if (r.g.cols() == 1) {
    out.dg(t, 0) = dg.sum();
  } else if (r.g.cols() > 1) {
    out.dg.row(t) = dg;
  }
}

}  // namespace

ReferenceOutputs gla_reference_forward(const ReferenceInputs& in, const GlaShape& shape) {
  const Recurrence r(in, shape);
  ReferenceOutputs out;
  out.o.resize(static_cast<std::size_t>(r.tokens * shape.d_v));
  View o(out.o.data(), r.tokens, shape.d_v);
  Matrix state = r.initial_state();
  for (Index t = 0; t < r.tokens; ++t) {
    r.step(state, t);
    o.row(t).noalias() = r.scale * (r.q.row(t) * state);
  }
  out.final_state.assign(state.data(), state.data() + state.size());
  return out;
}

ReferenceGradients gla_reference_backward(const ReferenceInputs& in, std::span<const double> d_o,
                                          std::span<const double> d_final_state, const GlaShape& shape) {
  const Recurrence r(in, shape);
  ReferenceGradients out;
  GradientRows rows(out, r);
  const auto run = std::max<Index>(1, static_cast<Index>(std::sqrt(static_cast<double>(r.tokens))));
  std::vector<Matrix> kept;  // the state before every token whose number is a multiple of run
  Matrix state = r.initial_state();
  for (Index t = 0; t < r.tokens; ++t) {
    if (t % run == 0) kept.push_back(state);
    r.step(state, t);
  }
  Matrix gradient = Matrix::Zero(shape.d_k, shape.d_v);
  if (!d_final_state.empty()) gradient = ConstView(d_final_state.data(), shape.d_k, shape.d_v);
  for (Index i = std::ssize(kept) - 1; i >= 0; --i) {
    const Index first = i * run, last = std::min(r.tokens, first + run);
    std::vector<Matrix> before{kept[static_cast<std::size_t>(i)]};
    for (Index t = first; t + 1 < last; ++t) r.step(before.emplace_back(before.back()), t);
    for (Index t = last - 1; t >= first; --t) {
      reverse_step(rows, gradient, r, before[static_cast<std::size_t>(t - first)],
                   ConstView(d_o.data(), r.tokens, shape.d_v), t);
    }
  }
  out.initial_state.assign(gradient.data(), gradient.data() + gradient.size());
  return out;
}

namespace {

/// The scores of query t [t + 1].
Eigen::RowVectorXd scores(const ConstView& q, const ConstView& k, Index t) {
  return q.row(t) * k.topRows(t + 1).transpose() / std::sqrt(static_cast<double>(k.cols()));
}

/// P_t [t + 1], the weights of query t.
Eigen::RowVectorXd weights(const ConstView& q, const ConstView& k, Index t) {
  const Eigen::RowVectorXd z = scores(q, k, t);
  const Eigen::RowVectorXd p = (z.array() - z.maxCoeff()).exp();
  return p / p.sum();
}

View zeros(std::vector<double>& x, Index rows, Index cols) {
  x.assign(static_cast<std::size_t>(rows * cols), 0.0);
  return {x.data(), rows, cols};
}

}  // namespace

std::vector<double> softmax_reference_forward(const ReferenceInputs& in, const GlaShape& shape) {
  const Index tokens = shape.tokens;
  const ConstView q(in.q.data(), tokens, shape.d_k), k(in.k.data(), tokens, shape.d_k);
  const ConstView v(in.v.data(), tokens, shape.d_v);
  std::vector<double> out;
  View o = zeros(out, tokens, shape.d_v);
  for (Index t = 0; t < tokens; ++t) o.row(t).noalias() = weights(q, k, t) * v.topRows(t + 1);
  return out;
}

std::vector<double> softmax_reference_lse(const ReferenceInputs& in, const GlaShape& shape) {
  const ConstView q(in.q.data(), shape.tokens, shape.d_k), k(in.k.data(), shape.tokens, shape.d_k);
  std::vector<double> lse;
  for (Index t = 0; t < shape.tokens; ++t) {
    const Eigen::RowVectorXd z = scores(q, k, t);
    lse.push_back(z.maxCoeff() + std::log((z.array() - z.maxCoeff()).exp().sum()));
  }
  return lse;
}

ReferenceGradients softmax_reference_backward(const ReferenceInputs& in, std::span<const double> d_o_data,
                                              const GlaShape& shape) {
  const Index tokens = shape.tokens;
  const ConstView q(in.q.data(), tokens, shape.d_k), k(in.k.data(), tokens, shape.d_k);
  const ConstView v(in.v.data(), tokens, shape.d_v), d_o(d_o_data.data(), tokens, shape.d_v);
  const double s = 1.0 / std::sqrt(static_cast<double>(shape.d_k));
  ReferenceGradients out;
  View dq = zeros(out.dq, tokens, shape.d_k), dk = zeros(out.dk, tokens, shape.d_k);
  View dv = zeros(out.dv, tokens, shape.d_v);
  for (Index t = 0; t < tokens; ++t) {
    const Eigen::RowVectorXd p = weights(q, k, t);
    const Eigen::RowVectorXd dp = d_o.row(t) * v.topRows(t + 1).transpose();
    const Eigen::RowVectorXd dz = p.array() * (dp.array() - p.dot(dp));
    dq.row(t).noalias() = s * (dz * k.topRows(t + 1));
    dk.topRows(t + 1).noalias() += s * (dz.transpose() * q.row(t));
    dv.topRows(t + 1).noalias() += p.transpose() * d_o.row(t);
  }
  return out;
}

}  // namespace baton
