// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/models/reference/layers.hpp"

#include <cmath>

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

namespace {

/// Turns pairs of channels of each head of x by the positions of their tokens, of which `period`
/// ones are a sequence; back if `back`.
Matrix turned(const Matrix& x, const SoftmaxLayers& of, std::int64_t period, bool back) {
  Matrix y = x;
  const std::int64_t half = of.rotated / 2;
  for (Eigen::Index t = 0; t < x.rows(); ++t)
    for (std::int64_t at = 0; at < x.cols(); at += of.d_k)
      for (std::int64_t i = 0; i < half; ++i) {
        const double turn = static_cast<double>(t % period) *
                            std::pow(of.rotation_base, -static_cast<double>(i) / static_cast<double>(half)),
                     cosine = std::cos(turn), sine = back ? -std::sin(turn) : std::sin(turn);
        y(t, at + i) = cosine * x(t, at + i) - sine * x(t, at + half + i);
        y(t, at + half + i) = cosine * x(t, at + half + i) + sine * x(t, at + i);
      }
  return y;
}

Matrix softplus(const Matrix& x) {
  return x.unaryExpr([](double z) { return std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))); });
}

/// Each of `heads` numbers of a row as often as a head has of `columns` columns, times x.
Matrix times_heads(const Matrix& x, const Matrix& of_heads) {
  const auto group = x.cols() / of_heads.cols();
  Matrix y = x;
  for (Eigen::Index c = 0; c < x.cols(); ++c) y.col(c) *= of_heads(0, c / group);
  return y;
}

}  // namespace

ReferenceBlock::ReferenceBlock(const ModelProblem& problem, int layer, std::uint64_t rounding)
    : problem_(problem),
      layer_(layer),
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

Matrix ReferenceBlock::projected(const std::string& name, const Matrix& x) {
  if (has(name)) return rounded(x * w(name));
  between_[name] = rounded(x * w(name + "_down"));
  return rounded(between_[name] * w(name + "_up"));
}

Matrix ReferenceBlock::through(const std::string& name, const Matrix& x, const Matrix& d,
                               WeightGradients& gradients) const {
  const auto one = [&](const std::string& matrix, const Matrix& from, const Matrix& of) -> Matrix {
    gradients[matrix] = sums_by_rank(from, of, problem_.ranks);
    return rounded(of * w(matrix).transpose());
  };
  if (has(name)) return one(name, x, d);
  return one(name + "_down", x, one(name + "_up", between_.at(name), d));
}

/// The rows of q or k as attention takes them.
Matrix ReferenceBlock::softmax_rows(const Matrix& raw, const std::string& norm) const {
  const SoftmaxLayers& of = problem_.stack.shape.softmax;
  const Matrix normed = has(norm) ? rounded(reference_norm(raw, w(norm), of.d_k)) : raw;
  return of.rotated > 0 ? rounded(turned(normed, of, sequence(), false)) : normed;
}

Matrix ReferenceBlock::softmax_rows_backward(const Matrix& raw, const std::string& norm, const Matrix& d,
                                             WeightGradients& gradients) const {
  const SoftmaxLayers& of = problem_.stack.shape.softmax;
  const Matrix d_normed = of.rotated > 0 ? rounded(turned(d, of, sequence(), true)) : d;
  if (!has(norm)) return d_normed;
  return reference_norm_backward(raw, w(norm), of.d_k, d_normed, problem_.ranks, gradients[norm], roundings_);
}

/// The attention's output as the gate takes it.
Matrix ReferenceBlock::normed_output() const {
  if (kind_ == Attention::softmax) return o_;
  return rounded(reference_norm(o_, w("output_norm"), w("output_norm").cols()));
}

/// The attention's output as the output projection takes it.
Matrix ReferenceBlock::gated_output() const {
  const OutputGate gate = problem_.stack.shape.output_gate(kind_);
  const Matrix normed = normed_output();
  if (gate == OutputGate::none) return normed;
  return rounded(normed.cwiseProduct(gate == OutputGate::silu ? silu(u_) : sigmoid(u_)));
}

/// The gradient of o for that of the gated output; d_u gets that of the gate's projection.
Matrix ReferenceBlock::output_backward(const Matrix& d_y, Matrix& d_u, WeightGradients& gradients) const {
  const OutputGate gate = problem_.stack.shape.output_gate(kind_);
  Matrix d_normed = d_y;
  if (gate != OutputGate::none) {
    const bool is_silu = gate == OutputGate::silu;
    d_normed = rounded(d_y.cwiseProduct(is_silu ? silu(u_) : sigmoid(u_)));
    const Matrix slope = is_silu ? silu_slope(u_) : Matrix(sigmoid(u_).cwiseProduct(sigmoid(-u_)));
    d_u = rounded(d_y.cwiseProduct(normed_output()).cwiseProduct(slope));
  }
  if (kind_ == Attention::softmax) return d_normed;
  return reference_norm_backward(o_, w("output_norm"), w("output_norm").cols(), d_normed, problem_.ranks,
                                 gradients["output_norm"], roundings_);
}

double ReferenceBlock::enlargement() const {
  if (kind_ == Attention::softmax) return 1;
  const auto width = w("output_norm").cols();
  const Eigen::Map<const Matrix> heads(o_.data(), o_.size() / width, width);
  const Eigen::VectorXd squares = heads.rowwise().squaredNorm() / static_cast<double>(width);
  return std::sqrt(squares.mean() / (squares.minCoeff() + double{norm_epsilon}));
}

/// The gates of lightning attention: slopes of ALiBi, flatter from layer to layer.
Matrix ReferenceBlock::fixed_gates() const {
  const ModelShape& shape = problem_.stack.shape;
  const double factor = 1 - layer_ / (shape.count() - 1 + 1e-5) + 1e-5;
  Matrix g(normed_.rows(), shape.linear.heads);
  for (Eigen::Index head = 0; head < g.cols(); ++head)
    g.col(head).setConstant(-factor * std::exp2(-8.0 * (1.0 + head) / g.cols()));
  return rounded(g);
}

/// Sets the inputs of attention from the normed rows.
void ReferenceBlock::project() {
  rows_.q = raw_q_ = projected("query", normed_);
  rows_.k = raw_k_ = projected("key", normed_);
  rows_.v = raw_v_ = projected("value", normed_);
  if (kind_ == Attention::softmax) {
    rows_.q = softmax_rows(raw_q_, "query_norm");
    rows_.k = softmax_rows(raw_k_, "key_norm");
  }
  if (problem_.stack.shape.is_lightning(kind_)) {
    rows_.q = rounded(silu(raw_q_));
    rows_.k = rounded(silu(raw_k_));
    rows_.v = rounded(silu(raw_v_));
    rows_.g = fixed_gates();
  }
  if (problem_.stack.shape.output_gate(kind_) != OutputGate::none) u_ = projected("output_gate", normed_);
  if (has("conv")) rows_.conv = w("conv");
  if (has("beta")) rows_.beta = rounded(sigmoid(projected("beta", normed_)));
  if (!has("gate_bias")) return;
  z_ = projected("gate", normed_).rowwise() + w("gate_bias").row(0);
  if (has("gate_rate"))
    rows_.g = rounded(times_heads(softplus(z_), -w("gate_rate").array().exp().matrix()));
  else
    rows_.g = rounded(-double{gate_factor} * softplus(-z_));
}

Matrix ReferenceBlock::forward(const Matrix& x) {
  x_ = x;
  normed_ = rounded(reference_norm(x, w("norm"), x.cols()));
  project();
  o_ = rounded(reference_attention(problem_, kind_, rows_, rounding_));
  h_ = rounded(x + rounded(gated_output() * w("output")));
  mlp_normed_ = rounded(reference_norm(h_, w("mlp_norm"), x.cols()));
  a_ = rounded(mlp_normed_ * w("mlp_gate"));
  b_ = rounded(mlp_normed_ * w("mlp_up"));
  return rounded(h_ + rounded(rounded(silu(a_).cwiseProduct(b_)) * w("mlp_down")));
}

/// The gradient of the gates' projection for that of the gates.
Matrix ReferenceBlock::gates_backward(const Matrix& d_g, WeightGradients& gradients) const {
  const Matrix ones = Matrix::Ones(d_g.rows(), 1);
  Matrix d_z = double{gate_factor} * d_g.cwiseProduct(sigmoid(-z_));
  if (has("gate_rate")) {
    const Matrix speed = -w("gate_rate").array().exp().matrix();
    d_z = times_heads(d_g.cwiseProduct(sigmoid(z_)), speed);
    const Matrix of_rates = times_heads(d_g.cwiseProduct(softplus(z_)), speed);
    for (const Matrix& sums : sums_by_rank(ones, of_rates, problem_.ranks)) {
      const auto group = sums.cols() / speed.cols();
      Matrix& of_rank = gradients["gate_rate"].emplace_back(Matrix::Zero(1, speed.cols()));
      for (Eigen::Index c = 0; c < sums.cols(); ++c) of_rank(0, c / group) += sums(0, c);
    }
  }
  d_z = rounded(d_z);
  gradients["gate_bias"] = sums_by_rank(ones, d_z, problem_.ranks);
  return d_z;
}

/// The gradient of the normed rows for that of the attention's output.
Matrix ReferenceBlock::attention_backward(const Matrix& d_o, WeightGradients& gradients) const {
  AttentionGradients d = reference_attention_backward(problem_, kind_, rows_, d_o, rounding_);
  if (has("conv")) gradients["conv"] = std::move(d.conv);
  if (kind_ == Attention::softmax) {
    d.of.q = softmax_rows_backward(raw_q_, "query_norm", rounded(d.of.q), gradients);
    d.of.k = softmax_rows_backward(raw_k_, "key_norm", rounded(d.of.k), gradients);
  }
  if (problem_.stack.shape.is_lightning(kind_)) {
    d.of.q = d.of.q.cwiseProduct(silu_slope(raw_q_));
    d.of.k = d.of.k.cwiseProduct(silu_slope(raw_k_));
    d.of.v = d.of.v.cwiseProduct(silu_slope(raw_v_));
  }
  Matrix d_normed = through("query", normed_, rounded(d.of.q), gradients);
  d_normed += through("key", normed_, rounded(d.of.k), gradients);
  d_normed += through("value", normed_, rounded(d.of.v), gradients);
  if (has("beta")) {
    const Matrix d_b = d.of.beta.cwiseProduct(rows_.beta)
                           .cwiseProduct(Matrix::Ones(d_o.rows(), rows_.beta.cols()) - rows_.beta);
    d_normed += through("beta", normed_, rounded(d_b), gradients);
  }
  if (has("gate_bias")) d_normed += through("gate", normed_, gates_backward(d.of.g, gradients), gradients);
  return d_normed;
}

Matrix ReferenceBlock::backward(const Matrix& d_out, WeightGradients& gradients) const {
  const auto through_norm = [&](const std::string& name, const Matrix& from, const Matrix& d) {
    return reference_norm_backward(from, w(name), from.cols(), rounded(d), problem_.ranks, gradients[name],
                                   roundings_);
  };
  const Matrix d_m = through("mlp_down", rounded(silu(a_).cwiseProduct(b_)), d_out, gradients);
  Matrix d_normed =
      through("mlp_gate", mlp_normed_, rounded(d_m.cwiseProduct(b_).cwiseProduct(silu_slope(a_))), gradients);
  d_normed += through("mlp_up", mlp_normed_, rounded(d_m.cwiseProduct(silu(a_))), gradients);
  const Matrix d_h = rounded(d_out + through_norm("mlp_norm", h_, d_normed));
  Matrix d_u;
  const Matrix d_o =
      rounded(output_backward(through("output", gated_output(), d_h, gradients), d_u, gradients));
  d_normed = attention_backward(d_o, gradients);
  if (u_.size() > 0) d_normed += through("output_gate", normed_, d_u, gradients);
  return rounded(d_h + through_norm("norm", x_, d_normed));
}

}  // namespace baton
