// SPDX-License-Identifier: Apache-2.0
// Decays of tokens relative to one reference token, and their products with rows of queries and
// keys.
//
//   x_i = b_i - b_r,   b_i = g_0 + .. + g_i          summed outwards from r, so it is exact near r
//   a query row at or after r carries e^{x_i} <= 1, a key row at or before r carries e^{-x_i} <= 1
//   gates of width d_k, 1 and 0 share the code: width 1 is broadcast, width 0 means a factor of one
//
// Cost: one addition and one exponential a gate element. Both are vectorised over channels.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (secondary-level chunking).
#pragma once

#include "sp_methods/kernels/host/tiles.hpp"

namespace baton {

/// Upper bound of |x| for which e^{x} and e^{-x} may be separate fp32 factors.
inline constexpr float gate_guard = 60.0F;
/// Lower bound of exponents, which keeps products free of denormal numbers.
inline constexpr float least_exponent = -80.0F;

/// Sets x [n, width] to b_i - b_reference for log gates g [n, width]; reference -1 is the edge
/// before token 0.
inline void relative_gates(Tile& x, const ConstTileRef& g, Index reference) {
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

/// True if every |x| of relative gates is below gate_guard. It reads the outer rows alone, as x is
/// monotone.
inline bool within_guard(const Tile& x) {
  if (x.cols() == 0) return true;
  return x.row(0).cwiseAbs().maxCoeff() < gate_guard &&
         x.row(x.rows() - 1).cwiseAbs().maxCoeff() < gate_guard;
}

/// Sets factor to e^{sign x}, at least e^{-80} so that no product meets denormal numbers.
inline void set_decays(Tile& factor, const Tile& x, float sign) {
  factor.resize(x.rows(), x.cols());
  factor.array() = (sign * x.array()).max(least_exponent).exp();
}

/// Sets out [n, d] to in (.) factor, with factor [n, d], [n, 1] or [n, 0].
inline void scale_rows(Tile& out, const ConstTileRef& in, const Tile& factor) {
  if (factor.cols() == 0) {
    out = in;
  } else if (factor.cols() == in.cols()) {
    out = in.cwiseProduct(factor);
  } else {
    out.resize(in.rows(), in.cols());
    for (Index i = 0; i < in.rows(); ++i) out.row(i) = factor(i, 0) * in.row(i);
  }
}

/// Adds in (.) factor to out [n, d], with factor [n, d], [n, 1] or [n, 0].
inline void add_scaled_rows(TileRef out, const Tile& in, const Tile& factor) {
  if (factor.cols() == 0) {
    out += in;
  } else if (factor.cols() == in.cols()) {
    out += in.cwiseProduct(factor);
  } else {
    for (Index i = 0; i < in.rows(); ++i) out.row(i) += factor(i, 0) * in.row(i);
  }
}

/// Replaces terms [n, d] by their sums over the rows at and after each row.
inline void suffix_sum(Tile& terms) {
  for (Index i = terms.rows() - 1; i > 0; --i) terms.row(i - 1) += terms.row(i);
}

/// Adds terms [n, d_k] to dg [n, width]: as they are for width d_k, or summed over channels for
/// width 1.
inline void add_gate_gradient(TileRef dg, const Tile& terms) {
  if (dg.cols() == terms.cols()) {
    dg += terms;
  } else {
    dg += terms.rowwise().sum();
  }
}

/// Sets dg [n, width] of a chunk from `sums` [n, d_k] of pairs that pass each gate and end in the
/// chunk, `passing` [d_k] of pairs across it, and `leaving` [n, d_k] of its tokens with later ones.
inline void set_chunk_gate_gradient(TileRef dg, Tile& sums, Eigen::RowVectorXf passing, const Tile& leaving) {
  for (Index i = 0; i < sums.rows(); ++i) {
    sums.row(i) += passing;
    passing += leaving.row(i);
  }
  dg.setZero();
  add_gate_gradient(dg, sums);
}

/// Adds the sum over tokens of log gates g [n, width] to total [d_k]. Width 1 is broadcast, and
/// width 0 adds nothing.
inline void add_total_gate(Eigen::ArrayXd& total, const ConstTileRef& g) {
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

/// The decay e^{total} [d_k] of a summed log gate, at least e^{-80}.
inline Eigen::ArrayXf decay_of(const Eigen::ArrayXd& total) {
  return total.cast<float>().max(least_exponent).exp();
}

/// Multiplies the columns of x [n, d_k] by gamma [d_k].
inline void decay_columns(Tile& x, const Eigen::RowVectorXf& gamma) { x.array().rowwise() *= gamma.array(); }

/// The decays e^b, e^{b_C - b} and e^{b_C} of one chunk of one head, where b is summed from the
/// chunk's start. All are <= 1 for any gate.
struct ChunkDecays {
  /// Sets all members for the chunk of the tokens `of`.
  void set_decays_of(const GlaHead& head, Tokens of) {
    tokens = of;
    relative_gates(gates_, head.g(tokens), -1);
    set_decays(from_start, gates_, 1.0F);
    relative_gates(gates_, head.g(tokens), tokens.count - 1);
    set_decays(to_end, gates_, -1.0F);
    total_.setZero(head.shape.d_k);
    add_total_gate(total_, head.g(tokens));
    gamma = decay_of(total_).matrix().transpose();
  }

  Tokens tokens;
  Tile from_start, to_end;   ///< [n, width of the gate]
  Eigen::RowVectorXf gamma;  ///< [d_k]

 private:
  Tile gates_;
  Eigen::ArrayXd total_;
};

}  // namespace baton
