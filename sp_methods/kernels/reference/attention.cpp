// SPDX-License-Identifier: Apache-2.0
// The oracles of gated linear and of softmax attention in double precision.
#include "sp_methods/kernels/reference/attention.hpp"

#include <algorithm>
#include <cmath>

#include "sp_methods/kernels/reference/recurrence.hpp"

namespace baton {
namespace {

using Eigen::Index;
using Matrix = OracleMatrix;
using View = OracleView;
using ConstView = ConstOracleView;
using Row = OracleRow;

/// The inputs as matrices, and the recurrence of the state.
class Recurrence : public OracleRows {
 public:
  Recurrence(const ReferenceInputs& in, const LayerShape& shape)
      : OracleRows(in, shape), initial_(in.initial_state) {}

  HeadState initial_state() const {
    if (initial_.empty()) return HeadState::Zero(k.cols(), v.cols());
    return ConstView(initial_.data(), k.cols(), v.cols()).array();
  }

  /// Sets `state` to the state after token t, from the state before it; both may be one matrix.
  void step(HeadState& state, const HeadState& before, const Eigen::ArrayXd& alpha, Index t) const {
    const Row key = row(k, t);
    for (Index j = 0; j < v.cols(); ++j) state.col(j) = alpha * before.col(j) + v(t, j) * key;
    roundings.round(numbers(state));
  }

 private:
  std::span<const double> initial_;
};

std::vector<double> by_rows(const HeadState& state) {
  std::vector<double> all;
  allocate(all, state.rows(), state.cols()) = state.matrix();
  return all;
}

/// The gradients as matrices over vectors of their size, and the gradient of the state.
class Reverse {
 public:
  Reverse(ReferenceGradients& out, const Recurrence& r, const ConstView& d_o, HeadState gradient)
      : r_(r),
        d_o_(d_o),
        dq_(allocate(out.dq, r.tokens, r.k.cols())),
        dk_(allocate(out.dk, r.tokens, r.k.cols())),
        dv_(allocate(out.dv, r.tokens, r.v.cols())),
        gates_(out.dg, r),
        gradient_(std::move(gradient)) {}

  /// Makes one reverse step over token t, from the state before it.
  void step(const HeadState& before, Index t) {
    const Row query = Recurrence::row(r_.q, t), key = Recurrence::row(r_.k, t);
    Eigen::Map<Eigen::ArrayXd> dq(dq_.data() + t * dq_.cols(), dq_.cols()),
        dk(dk_.data() + t * dk_.cols(), dk_.cols());
    r_.set_alpha(alpha_, t);
    for (Index j = 0; j < r_.v.cols(); ++j) {
      auto gradient = gradient_.col(j);
      gradient += r_.scale * d_o_(t, j) * query;
      dq += r_.scale * d_o_(t, j) * (alpha_ * before.col(j) + r_.v(t, j) * key);
      dk += r_.v(t, j) * gradient;
      dv_(t, j) = key.matrix().dot(gradient.matrix());
      gradient *= alpha_;
      gates_.add(gradient * before.col(j));
    }
    gates_.set(t);
    r_.roundings.round(numbers(gradient_));
  }

  const HeadState& gradient() const { return gradient_; }

 private:
  const Recurrence& r_;
  const ConstView& d_o_;
  View dq_, dk_, dv_;
  GateGradients gates_;
  HeadState gradient_;
  Eigen::ArrayXd alpha_;
};

}  // namespace

ReferenceOutputs gla_reference_forward(const ReferenceInputs& in, const LayerShape& shape) {
  const Recurrence r(in, shape);
  ReferenceOutputs out;
  View o = allocate(out.o, r.tokens, shape.d_v);
  HeadState state = r.initial_state();
  Eigen::ArrayXd alpha;
  for (Index t = 0; t < r.tokens; ++t) {
    r.set_alpha(alpha, t);
    r.step(state, state, alpha, t);
    for (Index j = 0; j < shape.d_v; ++j)
      o(t, j) = r.scale * Recurrence::row(r.q, t).matrix().dot(state.col(j).matrix());
  }
  out.final_state = by_rows(state);
  return out;
}

ReferenceGradients gla_reference_backward(const ReferenceInputs& in, std::span<const double> d_o,
                                          std::span<const double> d_final_state, const LayerShape& shape) {
  const Recurrence r(in, shape);
  HeadState gradient = HeadState::Zero(shape.d_k, shape.d_v);
  if (!d_final_state.empty()) gradient = ConstView(d_final_state.data(), shape.d_k, shape.d_v).array();
  ReferenceGradients out;
  const ConstView d_o_rows(d_o.data(), r.tokens, shape.d_v);
  Reverse reverse(out, r, d_o_rows, std::move(gradient));
  Eigen::ArrayXd alpha;
  walk_back(
      r.tokens, r.initial_state(),
      [&](HeadState& after, const HeadState& before, Index t) {
        r.set_alpha(alpha, t);
        r.step(after, before, alpha, t);
      },
      [&](const HeadState& before, Index t) { reverse.step(before, t); });
  out.initial_state = by_rows(reverse.gradient());
  return out;
}

namespace {

/// Number of queries that are solved together.
constexpr Index block = 64;

/// One block of queries with its weights P [n, last], the softmax over the keys that each query
/// sees.
struct QueryBlock {
  Index first, count, last;  // keys before `last` are seen by some query
  double scale;
  Matrix p;
  Eigen::VectorXd lse;

  QueryBlock(const ConstView& q, const ConstView& k, Index start, const Mask& mask)
      : first(start),
        count(std::min(block, q.rows() - start)),
        last(std::min<Index>(mask.upper(start + count - 1) + 1, k.rows())),
        scale(1.0 / std::sqrt(static_cast<double>(k.cols()))),
        lse(count) {
    p.noalias() = scale * (q.middleRows(first, count) * k.topRows(last).transpose());
    for (Index i = 0; i < count; ++i) {
      const Index begin = mask.lower(first + i), end = std::min<Index>(mask.upper(first + i) + 1, last);
      auto seen = p.row(i).segment(begin, end - begin);
      const double most = seen.maxCoeff();
      seen = (seen.array() - most).exp();
      const double sum = seen.sum();
      seen /= sum;
      lse(i) = most + std::log(sum);
      p.row(i).head(begin).setZero();
      p.row(i).tail(last - end).setZero();
    }
  }
};

/// Calls `visit` with each block of queries that `turn` selects.
template <class Visit>
void for_each_block(const ConstView& q, const ConstView& k, const QueryTurn& turn, const Mask& mask,
                    const Visit& visit) {
  for (Index i = turn.part; i * block < q.rows(); i += turn.parts) visit(QueryBlock(q, k, i * block, mask));
}

}  // namespace

SoftmaxOutputs softmax_reference_forward(const ReferenceInputs& in, const LayerShape& shape,
                                         const QueryTurn& turn, const Mask& mask) {
  const Index tokens = shape.tokens;
  const ConstView q(in.q.data(), tokens, shape.d_k), k(in.k.data(), tokens, shape.d_k);
  const ConstView v(in.v.data(), tokens, shape.d_v);
  SoftmaxOutputs out;
  View o = allocate(out.o, tokens, shape.d_v), lse = allocate(out.lse, tokens, 1);
  for_each_block(q, k, turn, mask, [&](const QueryBlock& b) {
    o.middleRows(b.first, b.count).noalias() = b.p * v.topRows(b.last);
    lse.middleRows(b.first, b.count) = b.lse;
  });
  return out;
}

ReferenceGradients softmax_reference_backward(const ReferenceInputs& in, std::span<const double> d_o_data,
                                              const LayerShape& shape, const QueryTurn& turn,
                                              const Mask& mask) {
  const Index tokens = shape.tokens;
  const ConstView q(in.q.data(), tokens, shape.d_k), k(in.k.data(), tokens, shape.d_k);
  const ConstView v(in.v.data(), tokens, shape.d_v), d_o(d_o_data.data(), tokens, shape.d_v);
  ReferenceGradients out;
  View dq = allocate(out.dq, tokens, shape.d_k), dk = allocate(out.dk, tokens, shape.d_k);
  View dv = allocate(out.dv, tokens, shape.d_v);
  Matrix dz;
  Roundings roundings(rounding_of(in.rounding, turn.part));
  for_each_block(q, k, turn, mask, [&](const QueryBlock& b) {
    const auto d_o_rows = d_o.middleRows(b.first, b.count);
    dv.topRows(b.last).noalias() += b.p.transpose() * d_o_rows;
    dz.noalias() = d_o_rows * v.topRows(b.last).transpose();  // dP
    Eigen::VectorXd mean = dz.cwiseProduct(b.p).rowwise().sum();
    if (roundings.are_drawn()) {  // methods make it from the output
      Matrix o = b.p * v.topRows(b.last);
      roundings.round({o.data(), static_cast<std::size_t>(o.size())});
      mean = d_o_rows.cwiseProduct(o).rowwise().sum();
    }
    dz = b.p.array() * (dz.colwise() - mean).array();
    dq.middleRows(b.first, b.count).noalias() = b.scale * (dz * k.topRows(b.last));
    dk.topRows(b.last).noalias() += b.scale * (dz.transpose() * q.middleRows(b.first, b.count));
  });
  return out;
}

}  // namespace baton
