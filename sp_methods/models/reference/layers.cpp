// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/models/reference/layers.hpp"

#include <cmath>

#include "sp_methods/kernels/reference/attention.hpp"

namespace baton {
namespace {

/// The logistic function of each element.
Matrix sigmoid(const Matrix& x) {
  return x.unaryExpr([](double z) { return 1 / (1 + std::exp(-z)); });
}

Matrix silu(const Matrix& x) { return x.cwiseProduct(sigmoid(x)); }

/// The slope of silu.
Matrix silu_slope(const Matrix& x) {
  return x.unaryExpr([](double z) {
    const double s = 1 / (1 + std::exp(-z));
    return s * (1 + z * (1 - s));
  });
}

/// Columns [head * width, (head + 1) * width) of rows [first, first + count) as one run.
std::vector<double> head_of(const Matrix& x, std::int64_t head, std::int64_t width, std::int64_t first,
                            std::int64_t count) {
  if (x.size() == 0) return {};
  const Matrix part = x.block(first, head * width, count, width);
  return {part.data(), part.data() + part.size()};
}

void add_head(Matrix& x, const std::vector<double>& part, std::int64_t head, std::int64_t width,
              std::int64_t first) {
  const std::int64_t count = static_cast<std::int64_t>(part.size()) / width;
  x.block(first, head * width, count, width) += Eigen::Map<const Matrix>(part.data(), count, width);
}

/// One head of one sequence, as the references take it.
struct Head {
  LayerShape shape;
  std::int64_t query_head, key_head, first;
  std::vector<double> q, k, v, g;
  std::uint64_t rounding;

  ReferenceInputs inputs() const { return {q, k, v, g, {}, rounding}; }
};

}  // namespace

std::vector<Matrix> sums_by_rank(const Matrix& x, const Matrix& d_y, int ranks) {
  std::vector<Matrix> all;
  const auto tokens = x.rows() / ranks;
  for (int rank = 0; rank < ranks; ++rank)
    all.emplace_back(x.middleRows(rank * tokens, tokens).transpose() * d_y.middleRows(rank * tokens, tokens));
  return all;
}

Matrix rounded(Matrix x, Roundings& roundings) {
  roundings.round({x.data(), static_cast<std::size_t>(x.size())});
  return x;
}

Matrix reference_norm(const Matrix& x, const Matrix& weight, std::int64_t group) {
  Matrix y(x.rows(), x.cols());
  for (Eigen::Index row = 0; row < x.rows(); ++row)
    for (Eigen::Index at = 0; at < x.cols(); at += group) {
      const auto part = x.row(row).segment(at, group);
      const double scale =
          1 / std::sqrt(part.squaredNorm() / static_cast<double>(group) + static_cast<double>(norm_epsilon));
      y.row(row).segment(at, group) = scale * part.cwiseProduct(weight.row(0));
    }
  return y;
}

Matrix reference_norm_backward(const Matrix& x, const Matrix& weight, std::int64_t group, const Matrix& d_y,
                               int ranks, std::vector<Matrix>& gradients, Roundings& roundings) {
  Matrix d_x(x.rows(), x.cols());
  gradients.assign(ranks, Matrix::Zero(1, group));
  for (Eigen::Index row = 0; row < x.rows(); ++row)
    for (Eigen::Index at = 0; at < x.cols(); at += group) {
      const Matrix part = x.row(row).segment(at, group), d = d_y.row(row).segment(at, group);
      const double n = static_cast<double>(group), mean = part.squaredNorm() / n + double{norm_epsilon};
      const Matrix weighted = d.cwiseProduct(weight);
      // y_i = w_i x_i m^(-1/2), so dy_i/dx_j = w_i (delta_ij m^(-1/2) - x_i x_j / n m^(-3/2)).
      const double dot = weighted.cwiseProduct(part).sum();
      d_x.row(row).segment(at, group) = rounded(weighted / std::sqrt(mean), roundings) -
                                        rounded(part * (dot / n / std::pow(mean, 1.5)), roundings);
      gradients[row * ranks / x.rows()] += d.cwiseProduct(part) / std::sqrt(mean);
    }
  return d_x;
}

ReferenceBlock::ReferenceBlock(const ModelProblem& problem, int layer, std::uint64_t rounding)
    : problem_(problem),
      kind_(problem.stack.shape.layers[layer]),
      rounding_(rounding_of(rounding, layer)),
      roundings_(rounding_) {
  const std::vector<float> all = layer_weight_values(problem, layer);
  const float* at = all.data();
  for (const Weight& weight : problem.stack.shape.weights(kind_)) {
    const Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> narrow(
        at, weight.rows, weight.columns);
    weights_[weight.name] = narrow.cast<double>();
    at += weight.count();
  }
}

namespace {

/// Calls `body` with every head of queries of every sequence.
template <class Body>
void for_each_head(const ModelProblem& problem, const LayerShape& share, const Matrix& q, const Matrix& k,
                   const Matrix& v, const Matrix& g, std::uint64_t rounding, const Body& body) {
  LayerShape shape = share;
  shape.tokens = problem.stack.is_alone() ? problem.stack.tokens : problem.all_tokens();
  for (std::int64_t first = 0; first < problem.all_tokens(); first += shape.tokens)
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      const std::int64_t of_keys = head / shape.group_heads(), n = shape.tokens;
      body(Head{shape, head, of_keys, first, head_of(q, head, shape.d_k, first, n),
                head_of(k, of_keys, shape.d_k, first, n), head_of(v, of_keys, shape.d_v, first, n),
                head_of(g, head, shape.d_k, first, n), rounding_of(rounding, first * shape.heads + head)});
    }
}

}  // namespace

Matrix ReferenceBlock::attention() const {
  const LayerShape share = problem_.stack.shape.share(kind_, problem_.stack.tokens);
  Matrix o = Matrix::Zero(x_.rows(), share.heads * share.d_v);
  for_each_head(problem_, share, q_, k_, v_, g_, rounding_, [&](const Head& head) {
    const auto of_head = kind_ == Attention::linear ? gla_reference_forward(head.inputs(), head.shape).o
                                                    : softmax_reference_forward(head.inputs(), head.shape).o;
    add_head(o, of_head, head.query_head, share.d_v, head.first);
  });
  return o;
}

void ReferenceBlock::attention_backward(const Matrix& d_o, Matrix& d_q, Matrix& d_k, Matrix& d_v,
                                        Matrix& d_g) const {
  const LayerShape share = problem_.stack.shape.share(kind_, problem_.stack.tokens);
  d_q = Matrix::Zero(q_.rows(), q_.cols());
  d_k = Matrix::Zero(k_.rows(), k_.cols());
  d_v = Matrix::Zero(v_.rows(), v_.cols());
  d_g = Matrix::Zero(g_.rows(), g_.cols());
  for_each_head(problem_, share, q_, k_, v_, g_, rounding_, [&](const Head& head) {
    const auto d = head_of(d_o, head.query_head, share.d_v, head.first, head.shape.tokens);
    const ReferenceGradients of_head = kind_ == Attention::linear
                                           ? gla_reference_backward(head.inputs(), d, {}, head.shape)
                                           : softmax_reference_backward(head.inputs(), d, head.shape);
    add_head(d_q, of_head.dq, head.query_head, share.d_k, head.first);
    add_head(d_k, of_head.dk, head.key_head, share.d_k, head.first);
    add_head(d_v, of_head.dv, head.key_head, share.d_v, head.first);
    if (g_.size() > 0) add_head(d_g, of_head.dg, head.query_head, share.d_k, head.first);
  });
}

/// The attention's output as the output projection takes it.
Matrix ReferenceBlock::gated_output() const {
  if (kind_ == Attention::softmax) return o_;
  const Matrix normed = rounded(reference_norm(o_, w("output_norm"), problem_.stack.shape.d_v));
  if (u_.size() == 0) return normed;
  return rounded(normed.cwiseProduct(silu(u_)));
}

/// The gradient of o for that of the gated output; d_u gets that of the gate's projection.
Matrix ReferenceBlock::output_backward(const Matrix& d_y, Matrix& d_u, WeightGradients& gradients) const {
  if (kind_ == Attention::softmax) return d_y;
  const std::int64_t group = problem_.stack.shape.d_v;
  Matrix d_normed = d_y;
  if (u_.size() > 0) {
    d_normed = rounded(d_y.cwiseProduct(silu(u_)));
    d_u = rounded(d_y.cwiseProduct(reference_norm(o_, w("output_norm"), group)).cwiseProduct(silu_slope(u_)));
  }
  return reference_norm_backward(o_, w("output_norm"), group, d_normed, problem_.ranks,
                                 gradients["output_norm"], roundings_);
}

double ReferenceBlock::enlargement() const {
  if (kind_ == Attention::softmax) return 1;
  const auto width = problem_.stack.shape.d_v;
  const Eigen::Map<const Matrix> heads(o_.data(), o_.size() / width, width);
  const Eigen::VectorXd squares = heads.rowwise().squaredNorm() / static_cast<double>(width);
  return std::sqrt(squares.mean() / (squares.minCoeff() + double{norm_epsilon}));
}

Matrix ReferenceBlock::forward(const Matrix& x) {
  x_ = x;
  normed_ = rounded(reference_norm(x, w("norm"), x.cols()));
  q_ = rounded(normed_ * w("query"));
  k_ = rounded(normed_ * w("key"));
  v_ = rounded(normed_ * w("value"));
  if (has("output_gate")) u_ = rounded(normed_ * w("output_gate"));
  if (has("gate_up")) {
    t_ = rounded(normed_ * w("gate_down"));
    z_ = rounded((t_ * w("gate_up")).rowwise() + w("gate_bias").row(0));
    g_ = rounded(z_.unaryExpr([](double value) { return double{gate_factor} * log_sigmoid(value); }));
  }
  o_ = rounded(attention());
  h_ = rounded(x + rounded(gated_output() * w("output")));
  mlp_normed_ = rounded(reference_norm(h_, w("mlp_norm"), x.cols()));
  a_ = rounded(mlp_normed_ * w("mlp_gate"));
  b_ = rounded(mlp_normed_ * w("mlp_up"));
  return rounded(h_ + rounded(rounded(silu(a_).cwiseProduct(b_)) * w("mlp_down")));
}

Matrix ReferenceBlock::backward(const Matrix& d_out, WeightGradients& gradients) const {
  const int ranks = problem_.ranks;
  Matrix d_normed = Matrix::Zero(x_.rows(), x_.cols());
  /// A product of the layer: the gradient of its weight, and of what it was made from.
  const auto through = [&](const std::string& name, const Matrix& from, const Matrix& d) -> Matrix {
    gradients[name] = sums_by_rank(from, d, ranks);
    return rounded(d * w(name).transpose());
  };
  const auto through_norm = [&](const std::string& name, const Matrix& from, const Matrix& d) {
    return reference_norm_backward(from, w(name), from.cols(), rounded(d), ranks, gradients[name],
                                   roundings_);
  };
  const Matrix d_m = through("mlp_down", rounded(silu(a_).cwiseProduct(b_)), d_out);
  d_normed = through("mlp_gate", mlp_normed_, rounded(d_m.cwiseProduct(b_).cwiseProduct(silu_slope(a_))));
  d_normed += through("mlp_up", mlp_normed_, rounded(d_m.cwiseProduct(silu(a_))));
  const Matrix d_h = rounded(d_out + through_norm("mlp_norm", h_, d_normed));
  Matrix d_u, d_q, d_k, d_v, d_g;
  const Matrix d_o = rounded(output_backward(through("output", gated_output(), d_h), d_u, gradients));
  attention_backward(d_o, d_q, d_k, d_v, d_g);
  d_normed = through("query", normed_, rounded(d_q));
  d_normed += through("key", normed_, rounded(d_k));
  d_normed += through("value", normed_, rounded(d_v));
  if (has("output_gate")) d_normed += through("output_gate", normed_, d_u);
  if (has("gate_up")) {
    const Matrix d_z = rounded(double{gate_factor} * d_g.cwiseProduct(sigmoid(-z_)));
    gradients["gate_bias"] = sums_by_rank(Matrix::Ones(d_z.rows(), 1), d_z, ranks);
    d_normed += through("gate_down", normed_, through("gate_up", t_, d_z));
  }
  return rounded(d_h + through_norm("norm", x_, d_normed));
}

}  // namespace baton
