// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/models/reference/layers.hpp"

#include <cmath>

namespace baton {

ReferenceBlock::ReferenceBlock(const ModelProblem& problem, int layer, std::uint64_t rounding)
    : problem_(problem),
      layer_(layer),
      kind_(problem.stack.shape.layers[layer]),
      rounding_(rounding_of(rounding, layer)),
      roundings_(rounding_) {
  const std::vector<float> all = layer_weight_values(problem, layer);
  const float* at = all.data();
  for (const Weight& weight : problem.stack.shape.weights(problem.stack.shape.layers[layer])) {
    const Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> narrow(
        at, weight.rows, weight.columns);
    weights_[weight.name] = narrow.cast<double>();
    at += weight.count();
  }
}

Matrix ReferenceBlock::projected(const std::string& name, const Matrix& x) {
  if (has(name)) return rounded(x * w(name));
  between_[name] = rounded(x * w(name + "_down"));
  return rounded(between(name) * w(name + "_up"));
}

/// What is between the two matrices of a projection, as the second one takes it.
Matrix ReferenceBlock::between(const std::string& name) const {
  const std::string norm = name + "_down_norm";
  const Matrix& raw = between_.at(name);
  return has(norm) ? rounded(reference_norm(raw, w(norm), raw.cols())) : raw;
}

/// The gradient of what the first matrix makes for that of what the second one takes.
Matrix ReferenceBlock::between_backward(const std::string& name, const Matrix& d,
                                        WeightGradients& gradients) const {
  const std::string norm = name + "_down_norm";
  if (!has(norm)) return d;
  const Matrix& raw = between_.at(name);
  return rounded(through_norm(norm, raw, raw.cols(), d, gradients));
}

Matrix ReferenceBlock::through(const std::string& name, const Matrix& x, const Matrix& d,
                               WeightGradients& gradients) const {
  const auto one = [&](const std::string& matrix, const Matrix& from, const Matrix& of) -> Matrix {
    gradients[matrix] = sums_by_rank(from, of, problem_.ranks);
    return rounded(of * w(matrix).transpose());
  };
  if (has(name)) return one(name, x, d);
  return one(name + "_down", x, between_backward(name, one(name + "_up", between(name), d), gradients));
}

/// The gradient of a norm's input, groups of `group` columns of which are normed.
Matrix ReferenceBlock::through_norm(const std::string& name, const Matrix& from, std::int64_t group,
                                    const Matrix& d, WeightGradients& gradients) const {
  return reference_norm_backward(from, w(name), group, d, problem_.ranks, gradients[name], roundings_);
}

/// Sets k, before its rotation, and v from latent rows.
void ReferenceBlock::project_latent() {
  const SoftmaxLayers& of = problem_.stack.shape.softmax;
  const std::int64_t own_width = of.d_k - of.shared_k;
  between_["latent"] = rounded(normed_ * w("latent_down"));
  const Matrix c = between("latent"), own = rounded(c * w("key"));
  rows_.v = rounded(c * w("value"));
  raw_k_ = Matrix(own.rows(), of.heads * of.d_k);
  for (std::int64_t head = 0; head < of.heads; ++head)
    raw_k_.middleCols(head * of.d_k + of.shared_k, own_width) = own.middleCols(head * own_width, own_width);
  if (of.shared_k == 0) return;
  const Matrix shared = rounded(normed_ * w("shared_key"));
  for (std::int64_t head = 0; head < of.heads; ++head) raw_k_.middleCols(head * of.d_k, of.shared_k) = shared;
}

/// The gradient of the normed rows for those of k, before its rotation, and of v.
Matrix ReferenceBlock::latent_backward(const Matrix& d_k, const Matrix& d_v,
                                       WeightGradients& gradients) const {
  const SoftmaxLayers& of = problem_.stack.shape.softmax;
  const std::int64_t own_width = of.d_k - of.shared_k;
  Matrix d_own(d_k.rows(), of.heads * own_width), d_shared = Matrix::Zero(d_k.rows(), of.shared_k);
  for (std::int64_t head = 0; head < of.heads; ++head) {
    d_shared += d_k.middleCols(head * of.d_k, of.shared_k);
    d_own.middleCols(head * own_width, own_width) = d_k.middleCols(head * of.d_k + of.shared_k, own_width);
  }
  const Matrix c = between("latent");
  const Matrix d_c = rounded(through("key", c, d_own, gradients) + through("value", c, d_v, gradients));
  Matrix d_normed = through("latent_down", normed_, between_backward("latent", d_c, gradients), gradients);
  if (of.shared_k > 0) d_normed += through("shared_key", normed_, rounded(d_shared), gradients);
  return d_normed;
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
  return through_norm(norm, raw, of.d_k, d_normed, gradients);
}

/// What the norm of the attention's output takes: in Mamba-2 the gated output.
Matrix ReferenceBlock::normed_rows() const {
  return problem_.stack.shape.is_mamba(kind_) ? rounded(o_.cwiseProduct(silu(u_))) : o_;
}

/// The attention's output behind its norm.
Matrix ReferenceBlock::normed_output() const {
  if (kind_ == Attention::softmax) return o_;
  return rounded(reference_norm(normed_rows(), w("output_norm"), normed_width()));
}

/// The attention's output as the output projection takes it.
Matrix ReferenceBlock::gated_output() const {
  const OutputGate gate = problem_.stack.shape.output_gate(kind_);
  const Matrix normed = normed_output();
  if (gate == OutputGate::none || problem_.stack.shape.is_mamba(kind_)) return normed;
  return rounded(normed.cwiseProduct(gate == OutputGate::silu ? silu(u_) : sigmoid(u_)));
}

/// The gradient of o for that of the gated output; d_u gets that of the gate's projection.
Matrix ReferenceBlock::output_backward(const Matrix& d_y, Matrix& d_u, WeightGradients& gradients) const {
  const OutputGate gate = problem_.stack.shape.output_gate(kind_);
  if (problem_.stack.shape.is_mamba(kind_)) {
    const Matrix d_gated =
        rounded(through_norm("output_norm", normed_rows(), normed_width(), d_y, gradients));
    d_u = rounded(d_gated.cwiseProduct(o_).cwiseProduct(silu_slope(u_)));
    return d_gated.cwiseProduct(silu(u_));
  }
  Matrix d_normed = d_y;
  if (gate != OutputGate::none) {
    const bool is_silu = gate == OutputGate::silu;
    d_normed = rounded(d_y.cwiseProduct(is_silu ? silu(u_) : sigmoid(u_)));
    const Matrix slope = is_silu ? silu_slope(u_) : Matrix(sigmoid(u_).cwiseProduct(sigmoid(-u_)));
    d_u = rounded(d_y.cwiseProduct(normed_output()).cwiseProduct(slope));
  }
  if (kind_ == Attention::softmax) return d_normed;
  return through_norm("output_norm", o_, normed_width(), d_normed, gradients);
}

double ReferenceBlock::enlargement() const {
  if (kind_ == Attention::softmax) return 1;
  const auto width = normed_width();
  const Matrix rows = normed_rows();
  const Eigen::Map<const Matrix> heads(rows.data(), rows.size() / width, width);
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
  if (problem_.stack.shape.is_latent(kind_)) {
    project_latent();
  } else {
    rows_.k = raw_k_ = projected("key", normed_);
    rows_.v = raw_v_ = projected("value", normed_);
  }
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
  if (has("skip")) rows_.skip = w("skip");
  if (has("beta")) rows_.beta = rounded(sigmoid(projected("beta", normed_)));
  if (!has("gate_bias")) return;
  z_ = projected("gate", normed_).rowwise() + w("gate_bias").row(0);
  if (has("skip")) rows_.steps = softplus(z_);
  const double bound = problem_.stack.shape.linear.gate_bound;
  if (bound > 0)
    rows_.g = rounded(-bound * sigmoid(times_heads(z_, w("gate_rate").array().exp().matrix())));
  else if (has("gate_rate"))
    rows_.g = rounded(times_heads(softplus(z_), -w("gate_rate").array().exp().matrix()));
  else
    rows_.g = rounded(-double{gate_factor} * softplus(-z_));
}

/// What the MLP has between its matrices.
Matrix ReferenceBlock::mlp_product() const {
  return rounded(has("mlp_gate") ? Matrix(silu(a_).cwiseProduct(b_)) : Matrix(b_.cwiseMax(0).cwiseAbs2()));
}

/// The gradient of the MLP's input.
Matrix ReferenceBlock::mlp_backward(const Matrix& d_out, WeightGradients& gradients) const {
  const Matrix d_m = through("mlp_down", mlp_product(), d_out, gradients);
  const Matrix slope = has("mlp_gate") ? silu(a_) : Matrix(2 * b_.cwiseMax(0));
  Matrix d_normed = through("mlp_up", mlp_normed_, rounded(d_m.cwiseProduct(slope)), gradients);
  if (has("mlp_gate"))
    d_normed += through("mlp_gate", mlp_normed_, rounded(d_m.cwiseProduct(b_).cwiseProduct(silu_slope(a_))),
                        gradients);
  return rounded(d_out + through_norm("mlp_norm", h_, h_.cols(), rounded(d_normed), gradients));
}

Matrix ReferenceBlock::forward(const Matrix& x) {
  x_ = x;
  normed_ = rounded(reference_norm(x, w("norm"), x.cols()));
  project();
  o_ = rounded(reference_attention(problem_, kind_, rows_, rounding_));
  h_ = rounded(x + rounded(gated_output() * w("output")));
  if (!has("mlp_norm")) return h_;
  mlp_normed_ = rounded(reference_norm(h_, w("mlp_norm"), x.cols()));
  if (has("mlp_gate")) a_ = rounded(mlp_normed_ * w("mlp_gate"));
  b_ = rounded(mlp_normed_ * w("mlp_up"));
  return rounded(h_ + rounded(mlp_product() * w("mlp_down")));
}

/// The gradient of the gates' projection for that of the gates, and of Mamba-2's steps.
Matrix ReferenceBlock::gates_backward(const AttentionRows& d, WeightGradients& gradients) const {
  const Matrix ones = Matrix::Ones(d.g.rows(), 1);
  Matrix d_z = double{gate_factor} * d.g.cwiseProduct(sigmoid(-z_));
  if (has("gate_rate")) {
    const Matrix speed = -w("gate_rate").array().exp().matrix();
    d_z = times_heads(d.g.cwiseProduct(sigmoid(z_)), speed);
    Matrix of_rates = times_heads(d.g.cwiseProduct(softplus(z_)), speed);
    if (const double bound = problem_.stack.shape.linear.gate_bound; bound > 0) {
      const Matrix at = times_heads(z_, -speed);
      d_z = bound * times_heads(d.g.cwiseProduct(sigmoid(at)).cwiseProduct(sigmoid(-at)), speed);
      of_rates = d_z.cwiseProduct(z_);
    }
    for (const Matrix& sums : sums_by_rank(ones, of_rates, problem_.ranks)) {
      const auto group = sums.cols() / speed.cols();
      Matrix& of_rank = gradients["gate_rate"].emplace_back(Matrix::Zero(1, speed.cols()));
      for (Eigen::Index c = 0; c < sums.cols(); ++c) of_rank(0, c / group) += sums(0, c);
    }
  }
  if (has("skip")) d_z += d.steps.cwiseProduct(sigmoid(z_));
  d_z = rounded(d_z);
  gradients["gate_bias"] = sums_by_rank(ones, d_z, problem_.ranks);
  return d_z;
}

/// The gradient of the normed rows for that of the attention's output.
Matrix ReferenceBlock::attention_backward(const Matrix& d_o, WeightGradients& gradients) const {
  AttentionGradients d = reference_attention_backward(problem_, kind_, rows_, d_o, rounding_);
  if (has("conv")) gradients["conv"] = std::move(d.conv);
  if (has("skip")) gradients["skip"] = std::move(d.skip);
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
  if (problem_.stack.shape.is_latent(kind_)) {
    d_normed += latent_backward(rounded(d.of.k), rounded(d.of.v), gradients);
  } else {
    d_normed += through("key", normed_, rounded(d.of.k), gradients);
    d_normed += through("value", normed_, rounded(d.of.v), gradients);
  }
  if (has("beta")) {
    const Matrix d_b = d.of.beta.cwiseProduct(rows_.beta)
                           .cwiseProduct(Matrix::Ones(d_o.rows(), rows_.beta.cols()) - rows_.beta);
    d_normed += through("beta", normed_, rounded(d_b), gradients);
  }
  if (has("gate_bias")) d_normed += through("gate", normed_, gates_backward(d.of, gradients), gradients);
  return d_normed;
}

Matrix ReferenceBlock::backward(const Matrix& d_out, WeightGradients& gradients) const {
  const Matrix d_h = has("mlp_norm") ? mlp_backward(d_out, gradients) : d_out;
  Matrix d_u;
  const Matrix d_o =
      rounded(output_backward(through("output", gated_output(), d_h, gradients), d_u, gradients));
  Matrix d_normed = attention_backward(d_o, gradients);
  if (u_.size() > 0) d_normed += through("output_gate", normed_, d_u, gradients);
  return rounded(d_h + through_norm("norm", x_, x_.cols(), rounded(d_normed), gradients));
}

}  // namespace baton
