// SPDX-License-Identifier: Apache-2.0
// Query by query; the header has the equations.
#include "sp_methods/kernels/reference/softmax.hpp"

#include <Eigen/Core>
#include <cmath>

namespace baton {
namespace {

using Eigen::Index;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<Matrix>;
using ConstView = Eigen::Map<const Matrix>;

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
