// SPDX-License-Identifier: Apache-2.0
// The oracle of linear attention with a delta rule in double precision.
#include "sp_methods/kernels/reference/delta_rule.hpp"

#include <utility>

#include "sp_methods/kernels/reference/recurrence.hpp"

namespace baton {
namespace {

using Eigen::Index;

/// The inputs of one head as matrices, and the recurrence of a column of the state.
class DeltaRule : public OracleRows {
 public:
  DeltaRule(const DeltaReferenceInputs& in, const LayerShape& shape)
      : OracleRows(in.of, shape), beta(in.beta) {}

  /// Sets `state` to the state after token t, from the state before it; both may be one matrix.
  void step(HeadState& state, const HeadState& before, Index t) {
    const OracleRow key = row(k, t);
    set_alpha(alpha_, t);
    for (Index j = 0; j < v.cols(); ++j) {
      auto column = state.col(j);
      column = alpha_ * before.col(j);
      column += strength(t) * (v(t, j) - column.matrix().dot(key.matrix())) * key;
    }
    roundings.round(numbers(state));
  }
  double strength(Index t) const { return beta[static_cast<std::size_t>(t)]; }

  const std::span<const double> beta;

 private:
  Eigen::ArrayXd alpha_;
};

/// The gradients as matrices over vectors of their size, and the gradient of the state.
class DeltaReverse {
 public:
  DeltaReverse(DeltaReferenceGradients& out, const DeltaRule& r, std::span<const double> d_o,
               HeadState gradient)
      : r_(r),
        d_o_(d_o.data(), r.tokens, r.v.cols()),
        dq_(allocate(out.of.dq, r.tokens, r.k.cols())),
        dk_(allocate(out.of.dk, r.tokens, r.k.cols())),
        dv_(allocate(out.of.dv, r.tokens, r.v.cols())),
        gates_(out.of.dg, r),
        dbeta_(allocate(out.dbeta, r.tokens, 1)),
        gradient_(std::move(gradient)) {}

  /// Makes one reverse step over token t, from the state before it.
  void step(const HeadState& before, Index t) {
    const OracleRow query = OracleRows::row(r_.q, t), key = OracleRows::row(r_.k, t);
    const double beta = r_.strength(t);
    Eigen::Map<Eigen::ArrayXd> dq(dq_.data() + t * dq_.cols(), dq_.cols()),
        dk(dk_.data() + t * dk_.cols(), dk_.cols());
    r_.set_alpha(alpha_, t);
    for (Index j = 0; j < r_.v.cols(); ++j) {
      auto gradient = gradient_.col(j);
      decayed_ = alpha_ * before.col(j);
      const double missing = r_.v(t, j) - decayed_.matrix().dot(key.matrix());
      gradient += r_.scale * d_o_(t, j) * query;
      const double d_written = gradient.matrix().dot(key.matrix());
      dq += r_.scale * d_o_(t, j) * (decayed_ + beta * missing * key);
      dk += beta * (missing * gradient - d_written * decayed_);
      dbeta_(t, 0) += d_written * missing;
      dv_(t, j) = beta * d_written;
      gradient -= dv_(t, j) * key;
      gates_.add(gradient * decayed_);
      gradient *= alpha_;
    }
    gates_.set(t);
    r_.roundings.round(numbers(gradient_));
  }

  const HeadState& gradient() const { return gradient_; }

 private:
  const DeltaRule& r_;
  const ConstOracleView d_o_;
  OracleView dq_, dk_, dv_;
  GateGradients gates_;
  OracleView dbeta_;
  HeadState gradient_;
  Eigen::ArrayXd alpha_, decayed_;
};

}  // namespace

ReferenceOutputs delta_reference_forward(const DeltaReferenceInputs& in, const LayerShape& shape) {
  DeltaRule rule(in, shape);
  return values_first_forward<ReferenceOutputs>(rule, in.of.initial_state, shape);
}

DeltaReferenceGradients delta_reference_backward(const DeltaReferenceInputs& in, std::span<const double> d_o,
                                                 std::span<const double> d_final_state,
                                                 const LayerShape& shape) {
  return values_first_backward<DeltaRule, DeltaReverse, DeltaReferenceGradients>(in, d_o, d_final_state,
                                                                                 shape);
}

std::vector<double> delta_reference_matrix(const DeltaReferenceInputs& in, const LayerShape& shape) {
  return matrix_without_values<DeltaRule>(in, shape);
}

}  // namespace baton
