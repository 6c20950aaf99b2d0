// SPDX-License-Identifier: Apache-2.0
// A block in double precision over all tokens of all ranks, and its gradients.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sp_methods/models/reference/functions.hpp"

namespace baton {

/// Gradients of one layer's weights [count], one a rank, by the weight's name.
using WeightGradients = std::map<std::string, std::vector<Matrix>>;

/// One layer of a model in double precision, over all tokens of all ranks.
class ReferenceBlock {
 public:
  /// Makes layer number `layer`. A `rounding` other than 0 is the key by which all its results are
  /// rounded at random.
  ReferenceBlock(const ModelProblem& problem, int layer, std::uint64_t rounding = 0);

  /// A weight, which may be changed.
  Matrix& weight(const std::string& name) { return weights_.at(name); }

  /// Returns the layer's output [all tokens, width], and keeps what the backward pass needs.
  Matrix forward(const Matrix& x);
  /// Returns the gradient of x, and sets the gradients of the weights.
  Matrix backward(const Matrix& d_out, WeightGradients& gradients) const;

  /// Ratio of the root mean square of all heads' outputs to the smallest one of a token and head; 1
  /// for softmax attention. The norm of this smallest output enlarges errors by this factor.
  double enlargement() const;

 private:
  const Matrix& w(const std::string& name) const { return weights_.at(name); }
  bool has(const std::string& name) const { return weights_.contains(name); }
  /// Number of tokens of a sequence.
  std::int64_t sequence() const {
    return problem_.stack.is_alone() ? problem_.stack.tokens : problem_.all_tokens();
  }
  /// The projection called `name` of x.
  Matrix projected(const std::string& name, const Matrix& x);
  /// The gradient of x for that of its projection, and those of the weights.
  Matrix through(const std::string& name, const Matrix& x, const Matrix& d, WeightGradients& gradients) const;
  Matrix fixed_gates() const;
  void project();
  void project_latent();
  Matrix between(const std::string& name) const;
  Matrix between_backward(const std::string& name, const Matrix& d, WeightGradients& gradients) const;
  Matrix latent_backward(const Matrix& d_k, const Matrix& d_v, WeightGradients& gradients) const;
  Matrix softmax_rows(const Matrix& raw, const std::string& norm) const;
  Matrix softmax_rows_backward(const Matrix& raw, const std::string& norm, const Matrix& d,
                               WeightGradients& gradients) const;
  Matrix mlp_product() const;
  Matrix mlp_backward(const Matrix& d_out, WeightGradients& gradients) const;
  Matrix through_norm(const std::string& name, const Matrix& from, std::int64_t group, const Matrix& d,
                      WeightGradients& gradients) const;
  /// The columns of the attention's output that are normed together: in Mamba-2 those of the heads
  /// that share one of q.
  std::int64_t normed_width() const {
    const ModelShape& shape = problem_.stack.shape;
    const auto all = w("output_norm").cols();
    return shape.is_mamba(kind_) ? all / shape.share(kind_, 1).query_heads() : all;
  }
  Matrix normed_rows() const;
  Matrix normed_output() const;
  Matrix gated_output() const;
  Matrix attention_backward(const Matrix& d_o, WeightGradients& gradients) const;
  Matrix gates_backward(const AttentionRows& d, WeightGradients& gradients) const;
  Matrix output_backward(const Matrix& d_y, Matrix& d_u, WeightGradients& gradients) const;

  Matrix rounded(Matrix x) const { return baton::rounded(std::move(x), roundings_); }

  const ModelProblem& problem_;
  int layer_;
  Attention kind_;
  std::uint64_t rounding_;
  mutable Roundings roundings_;
  std::map<std::string, Matrix> weights_;
  std::map<std::string, Matrix> between_;  // what is between the two matrices of a projection
  AttentionRows rows_;
  Matrix x_, normed_, raw_q_, raw_k_, raw_v_, z_, u_, o_, h_, mlp_normed_, a_, b_;
};

}  // namespace baton
