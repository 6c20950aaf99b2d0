// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/host/gla/gates.hpp"

namespace baton {

void relative_gates(Tile& x, const ConstTileRef& g, Index reference) {
  x.resize(g.rows(), g.cols());
  if (g.cols() == 0) return;
  const Index start = std::max<Index>(reference, 0);
  if (reference < 0) {
    x.row(0) = g.row(0);
  } else {
    x.row(reference).setZero();
  }
  for (Index i = start + 1; i < g.rows(); ++i) x.row(i) = x.row(i - 1) + g.row(i);
  for (Index i = start; i > 0; --i) x.row(i - 1) = x.row(i) - g.row(i);
}

bool within_guard(const Tile& x) {
  if (x.cols() == 0) return true;
  return x.row(0).cwiseAbs().maxCoeff() < gate_guard &&
         x.row(x.rows() - 1).cwiseAbs().maxCoeff() < gate_guard;
}

void set_decays(Tile& factor, const Tile& x, float sign) {
  factor.resize(x.rows(), x.cols());
  factor.array() = (sign * x.array()).max(least_exponent).exp();
}

void scale_rows(Tile& out, const ConstTileRef& in, const Tile& factor) {
  if (factor.cols() == 0) {
    out = in;
  } else if (factor.cols() == in.cols()) {
    out = in.cwiseProduct(factor);
  } else {
    out.resize(in.rows(), in.cols());
    for (Index i = 0; i < in.rows(); ++i) out.row(i) = factor(i, 0) * in.row(i);
  }
}

void add_scaled_rows(TileRef out, const Tile& in, const Tile& factor) {
  if (factor.cols() == 0) {
    out += in;
  } else if (factor.cols() == in.cols()) {
    out += in.cwiseProduct(factor);
  } else {
    for (Index i = 0; i < in.rows(); ++i) out.row(i) += factor(i, 0) * in.row(i);
  }
}

void suffix_sum(Tile& terms) {
  for (Index i = terms.rows() - 1; i > 0; --i) terms.row(i - 1) += terms.row(i);
}

void add_gate_gradient(TileRef dg, const Tile& terms) {
  if (dg.cols() == terms.cols()) {
    dg += terms;
  } else {
    dg += terms.rowwise().sum();
  }
}

void set_chunk_gate_gradient(TileRef dg, Tile& sums, Eigen::RowVectorXf passing, const Tile& leaving) {
  for (Index i = 0; i < sums.rows(); ++i) {
    sums.row(i) += passing;
    passing += leaving.row(i);
  }
  dg.setZero();
  add_gate_gradient(dg, sums);
}

void add_total_gate(Eigen::ArrayXd& total, const ConstTileRef& g) {
  if (g.cols() == 0) return;
  Eigen::RowVectorXf sum = g.row(0);
  for (Index i = 1; i < g.rows(); ++i)
    sum += g.row(i);  // by rows: Eigen's colwise() walks columns one by one
  if (g.cols() == total.size()) {
    total += sum.transpose().array().cast<double>();
  } else {
    total += static_cast<double>(sum(0));
  }
}

Eigen::ArrayXf decay_of(const Eigen::ArrayXd& total) { return total.cast<float>().max(least_exponent).exp(); }

void ChunkDecays::set_decays_of(const GlaHead& head, Tokens of) {
  tokens = of;
  relative_gates(gates_, head.g(tokens), -1);
  set_decays(from_start, gates_, 1.0F);
  relative_gates(gates_, head.g(tokens), tokens.count - 1);
  set_decays(to_end, gates_, -1.0F);
  total_.setZero(head.shape.d_k);
  add_total_gate(total_, head.g(tokens));
  gamma = decay_of(total_).matrix().transpose();
}

}  // namespace baton
