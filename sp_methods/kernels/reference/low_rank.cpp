// SPDX-License-Identifier: Apache-2.0
// The oracle of linear attention with a low-rank rule in double precision.
#include "sp_methods/kernels/reference/low_rank.hpp"

#include <utility>

#include "sp_methods/kernels/reference/recurrence.hpp"

namespace baton {
namespace {

using Eigen::Index;

/// The inputs of one head as matrices, and the recurrence of a column of the state.
class LowRankRule : public OracleRows {
 public:
  LowRankRule(const LowRankReferenceInputs& in, const LayerShape& shape)
      : OracleRows(in.of, shape), a(in.a.data(), tokens, shape.d_k), b(in.b.data(), tokens, shape.d_k) {}

  /// Sets `state` to the state after token t, from the state before it; both may be one matrix.
  void step(HeadState& state, const HeadState& before, Index t) {
    set_alpha(alpha_, t);
    for (Index j = 0; j < v.cols(); ++j) {
      const double read = before.col(j).matrix().dot(row(a, t).matrix());
      state.col(j) = alpha_ * before.col(j) + read * row(b, t) + v(t, j) * row(k, t);
    }
    roundings.round(numbers(state));
  }

  const ConstOracleView a, b;

 private:
  Eigen::ArrayXd alpha_;
};

/// The gradients as matrices over vectors of their size, and the gradient of the state.
class LowRankReverse {
 public:
  LowRankReverse(LowRankReferenceGradients& out, const LowRankRule& r, std::span<const double> d_o,
                 HeadState gradient)
      : r_(r),
        d_o_(d_o.data(), r.tokens, r.v.cols()),
        dq_(allocate(out.of.dq, r.tokens, r.k.cols())),
        dk_(allocate(out.of.dk, r.tokens, r.k.cols())),
        dv_(allocate(out.of.dv, r.tokens, r.v.cols())),
        gates_(out.of.dg, r),
        da_(allocate(out.da, r.tokens, r.k.cols())),
        db_(allocate(out.db, r.tokens, r.k.cols())),
        gradient_(std::move(gradient)) {}

  /// Makes one reverse step over token t, from the state before it.
  void step(const HeadState& before, Index t) {
    const OracleRow q = OracleRows::row(r_.q, t), k = OracleRows::row(r_.k, t);
    const OracleRow a = OracleRows::row(r_.a, t), b = OracleRows::row(r_.b, t);
    r_.set_alpha(alpha_, t);
    for (Index j = 0; j < r_.v.cols(); ++j) {
      auto gradient = gradient_.col(j);
      const double read = before.col(j).matrix().dot(a.matrix());
      decayed_ = alpha_ * before.col(j);
      row(dq_, t) += r_.scale * d_o_(t, j) * (decayed_ + read * b + r_.v(t, j) * k);
      gradient += r_.scale * d_o_(t, j) * q;
      const double d_read = gradient.matrix().dot(b.matrix());
      dv_(t, j) = gradient.matrix().dot(k.matrix());
      row(dk_, t) += r_.v(t, j) * gradient;
      row(db_, t) += read * gradient;
      row(da_, t) += d_read * before.col(j);
      gates_.add(gradient * decayed_);
      gradient = alpha_ * gradient + d_read * a;
    }
    gates_.set(t);
    r_.roundings.round(numbers(gradient_));
  }

  const HeadState& gradient() const { return gradient_; }

 private:
  static Eigen::Map<Eigen::ArrayXd> row(OracleView& x, Index t) {
    return {x.data() + t * x.cols(), x.cols()};
  }

  const LowRankRule& r_;
  const ConstOracleView d_o_;
  OracleView dq_, dk_, dv_;
  GateGradients gates_;
  OracleView da_, db_;
  HeadState gradient_;
  Eigen::ArrayXd alpha_, decayed_;
};

}  // namespace

ReferenceOutputs low_rank_reference_forward(const LowRankReferenceInputs& in, const LayerShape& shape) {
  LowRankRule rule(in, shape);
  return values_first_forward<ReferenceOutputs>(rule, in.of.initial_state, shape);
}

LowRankReferenceGradients low_rank_reference_backward(const LowRankReferenceInputs& in,
                                                      std::span<const double> d_o,
                                                      std::span<const double> d_final_state,
                                                      const LayerShape& shape) {
  return values_first_backward<LowRankRule, LowRankReverse, LowRankReferenceGradients>(in, d_o, d_final_state,
                                                                                       shape);
}

std::vector<double> low_rank_reference_matrix(const LowRankReferenceInputs& in, const LayerShape& shape) {
  return matrix_without_values<LowRankRule>(in, shape);
}

}  // namespace baton
