// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/host/gla/gate_sums.hpp"

namespace baton {
namespace {

bool has(const StateRows& x, Index token) { return token < x.rows.rows(); }
Eigen::RowVectorXd row(const StateRows& x, Index token) {
  return x.factor * x.rows.row(token).cast<double>();
}
Eigen::RowVectorXd partner(const StateRows& x, Index token) { return x.partners.row(token).cast<double>(); }

/// The terms of a token's row with a state [d_v, d_k].
Eigen::RowVectorXd terms(const StateRows& x, Index token, const ExactTile& state) {
  return row(x, token).cwiseProduct(partner(x, token) * state);
}
void add_to(ExactTile& state, const StateRows& x, Index token) {
  state.noalias() += partner(x, token).transpose() * row(x, token);
}

}  // namespace

void set_gate_sums(ExactTile& x, const ConstTileRef& g, const Tile& state,
                   std::initializer_list<StateRows> readers, std::initializer_list<StateRows> writers) {
  const ExactTile decays = g.cast<double>().array().exp();
  const auto decay = [&](ExactTile& s, Index token) {
    if (decays.cols() == 1)
      s *= decays(token, 0);
    else
      s.array().rowwise() *= decays.row(token).array();
  };
  ExactTile s = state.cast<double>(), d = ExactTile::Zero(state.rows(), state.cols());
  x.setZero(g.rows(), state.cols());
  for (Index t = 0; t < x.rows(); ++t) {
    decay(s, t);
    for (const StateRows& one : readers)
      if (has(one, t)) x.row(t) += terms(one, t, s);
    for (const StateRows& one : writers) add_to(s, one, t);
  }
  for (Index t = x.rows() - 1; t >= 0; --t) {
    for (const StateRows& one : writers) x.row(t) -= terms(one, t, d);
    for (const StateRows& one : readers)
      if (has(one, t)) add_to(d, one, t);
    decay(d, t);
    if (t + 1 < x.rows()) x.row(t) += x.row(t + 1);
  }
}

}  // namespace baton
