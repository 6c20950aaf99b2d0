// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/models/reference/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "sp_methods/models/kernels/embedding_loss_adamw.hpp"
#include "sp_methods/models/reference/layers.hpp"

namespace baton {
namespace {

std::vector<double> run_of(const Matrix& x) { return {x.data(), x.data() + x.size()}; }

Matrix matrix_of(const std::vector<float>& values, std::int64_t columns) {
  Matrix x(static_cast<std::int64_t>(values.size()) / columns, columns);
  for (std::size_t i = 0; i < values.size(); ++i) x.data()[i] = values[i];
  return x;
}

/// The ends of a model with a head.
class Ends {
 public:
  Ends(const ModelProblem& problem, std::uint64_t rounding)
      : problem_(problem),
        roundings_(rounding),
        ids_(input_values(problem, "ids", 0, problem.all_tokens())),
        targets_(input_values(problem, "targets", 0, problem.all_tokens())),
        table_(matrix("table", shape().vocabulary, shape().width)),
        head_(matrix("head", shape().width, shape().vocabulary)),
        norm_(matrix("last_norm", 1, shape().width)) {}

  Matrix embedded() const {
    Matrix x(problem_.all_tokens(), shape().width);
    for (Eigen::Index t = 0; t < x.rows(); ++t) x.row(t) = table_.row(static_cast<Eigen::Index>(ids_[t]));
    return x;
  }

  /// The gradient of the last layer's output for that of the mean loss.
  Matrix through_loss(const Matrix& y, std::vector<double>& losses, WeightGradients& gradients) const {
    const Matrix n = rounded(reference_norm(y, norm_, y.cols()), roundings_);
    Matrix d = rounded(n * head_, roundings_);
    for (Eigen::Index t = 0; t < d.rows(); ++t) {
      const auto target = static_cast<Eigen::Index>(targets_[t]);
      const double most = d.row(t).maxCoeff(), of_target = d(t, target);
      const double sum = (d.row(t).array() - most).exp().sum();
      const double of_all = most + std::log(sum);
      losses.push_back(of_all + roundings_.of(of_all) - of_target);
      d.row(t) = rounded((d.row(t).array() - most).exp() / sum, roundings_);
      d(t, target) -= 1;
    }
    d /= static_cast<double>(d.rows());
    gradients["d_head"] = sums_by_rank(n, d, problem_.ranks);
    return reference_norm_backward(y, norm_, y.cols(), rounded(d * head_.transpose(), roundings_),
                                   problem_.ranks, gradients["d_last_norm"], roundings_);
  }

  void through_embedding(const Matrix& d_x, WeightGradients& gradients) const {
    gradients["d_table"].assign(problem_.ranks, Matrix::Zero(table_.rows(), table_.cols()));
    for (Eigen::Index t = 0; t < d_x.rows(); ++t)
      gradients["d_table"][t / problem_.stack.tokens].row(static_cast<Eigen::Index>(ids_[t])) += d_x.row(t);
  }

 private:
  const ModelShape& shape() const { return problem_.stack.shape; }
  Matrix matrix(const char* name, std::int64_t rows, std::int64_t columns) const {
    return matrix_of(input_values(problem_, name, 0, rows * columns), columns);
  }

  const ModelProblem& problem_;
  mutable Roundings roundings_;
  std::vector<float> ids_, targets_;
  Matrix table_, head_, norm_;
};

/// The gradients of a layer's weights side by side, as its buffer has them, with `count` elements.
std::vector<double> in_one_run(const std::vector<Weight>& weights, const WeightGradients& gradients, int rank,
                               std::int64_t count) {
  std::vector<double> all;
  for (const Weight& weight : weights) {
    const Matrix& gradient = gradients.at(weight.name)[rank];
    all.insert(all.end(), gradient.data(), gradient.data() + gradient.size());
  }
  all.resize(count, 0);
  return all;
}

/// The new values of `what` after AdamW's step.
std::vector<double> after_step(const std::string& what, const ModelProblem& problem, int layer, int rank,
                               const std::vector<double>& gradients) {
  const AdamW::Parameters p;
  const double beta_1 = p.beta_1, beta_2 = p.beta_2;
  const auto old = [&](const char* name) { return rank_values(problem, layer_buffer(name, layer), rank); };
  const std::vector<float> weights = old("weights"), m = old("first_moment"), v = old("second_moment");
  std::vector<double> all(gradients.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double g = gradients[i], new_m = beta_1 * m[i] + (1 - beta_1) * g,
                 new_v = beta_2 * v[i] + (1 - beta_2) * g * g,
                 step = new_m / (1 - beta_1) / (std::sqrt(new_v / (1 - beta_2)) + double{p.epsilon});
    all[i] = what == "new_first_moment" ? new_m
             : what == "new_second_moment"
                 ? new_v
                 : weights[i] * (1 - double{p.rate} * double{p.decay}) - double{p.rate} * step;
  }
  return all;
}

}  // namespace

ModelOracle::ModelOracle(const ModelProblem& problem, std::uint64_t rounding) : problem_(problem) {
  const ModelShape& shape = problem_.stack.shape;
  const bool has_head = problem_.stack.has_head;
  const auto hidden = [&](const char* name) {
    return matrix_of(input_values(problem_, name, 0, problem_.all_tokens() * shape.width), shape.width);
  };
  std::vector<ReferenceBlock> blocks;
  for (int layer = 0; layer < shape.count(); ++layer) blocks.emplace_back(problem_, layer, rounding);
  WeightGradients of_ends;
  std::optional<Ends> ends;
  if (has_head) ends.emplace(problem_, rounding_of(rounding, shape.count()));
  Matrix y = has_head ? ends->embedded() : hidden("x");
  for (ReferenceBlock& block : blocks) {
    y = block.forward(y);
    enlargement_ = std::max(enlargement_, block.enlargement());
  }
  const bool has_backward = problem_.stack.has_backward;
  Matrix d = has_head       ? ends->through_loss(y, rows_["losses"], of_ends)
             : has_backward ? hidden("d_y")
                            : Matrix::Zero(y.rows(), y.cols());
  loss_ = has_head ? Eigen::Map<const Eigen::VectorXd>(rows_["losses"].data(), y.rows()).mean()
                   : d.cwiseProduct(y).sum();
  if (!has_head) rows_["y"] = run_of(y);
  if (!has_backward) return;
  for (int layer = shape.count() - 1; layer >= 0; --layer) {
    WeightGradients gradients;
    d = blocks[layer].backward(d, gradients);
    const LayerKind kind = shape.layers[layer];
    for (int rank = 0; rank < problem_.ranks; ++rank)
      sums_[layer_buffer("d_weights", layer)].push_back(in_one_run(
          shape.weights(kind), gradients, rank, problem_.stack.weight_count(kind, problem_.ranks)));
  }
  if (has_head) ends->through_embedding(d, of_ends);
  if (!has_head) rows_["d_x"] = run_of(d);
  for (const auto& [name, of_ranks] : of_ends)
    for (const Matrix& gradient : of_ranks) sums_[name].push_back(run_of(gradient));
}

std::vector<double> ModelOracle::expected(const std::string& name, int rank) const {
  if (const auto rows = rows_.find(name); rows != rows_.end()) {
    const auto count = static_cast<std::int64_t>(rows->second.size()) / problem_.ranks;
    return {rows->second.begin() + rank * count, rows->second.begin() + (rank + 1) * count};
  }
  if (name.starts_with("new_")) {
    const auto at = name.rfind('_');
    const int layer = std::stoi(name.substr(at + 1));
    return after_step(name.substr(0, at), problem_, layer, rank,
                      expected(layer_buffer("d_weights", layer), rank));
  }
  const auto& of_ranks = sums_.at(name);
  if (!problem_.stack.shards_weights || !name.starts_with("d_weights")) return of_ranks[rank];
  const auto shard = static_cast<std::int64_t>(of_ranks[0].size()) / problem_.ranks;
  std::vector<double> sum(shard, 0.0);
  for (const auto& of_rank : of_ranks)
    for (std::int64_t i = 0; i < shard; ++i) sum[i] += of_rank[rank * shard + i];
  return sum;
}

/// All outputs of all ranks.
std::vector<ModelOracle::OutputOfRank> ModelOracle::outputs() const {
  std::vector<std::string> names;
  for (const auto& [name, rows] : rows_) names.push_back(name);
  for (const auto& [name, sums] : sums_) names.push_back(name);
  for (int layer = 0; layer < problem_.stack.shape.count() && problem_.stack.has_optimizer; ++layer)
    for (const char* what : {"new_weights", "new_first_moment", "new_second_moment"})
      names.push_back(layer_buffer(what, layer));
  std::vector<OutputOfRank> all;
  for (const std::string& name : names)
    for (int rank = 0; rank < problem_.ranks; ++rank) all.emplace_back(name, rank);
  return all;
}

double ModelOracle::rms_of_terms(const std::string& name, int rank, std::int64_t first,
                                 std::int64_t count) const {
  const int missing = squares_of_terms_.empty() ? rounded_solutions : 0;
  for (int i = 1; i <= missing; ++i) {
    const ModelOracle rounded(problem_, i);
    for (const auto& [output, of_rank] : outputs())
      add_squares_of_terms(squares_of_terms_[{output, of_rank}], rounded.expected(output, of_rank),
                           expected(output, of_rank));
  }
  const auto run = squares_of_terms_.at({name, rank}).begin() + first;
  return std::sqrt(std::accumulate(run, run + count, 0.0) / static_cast<double>(count));
}

double model_oracle_flop(const ModelProblem& problem) {
  const Stack& stack = problem.stack;
  const double tokens = static_cast<double>(problem.all_tokens());
  const std::int64_t sequence = stack.is_alone() ? stack.tokens : problem.all_tokens();
  // The reference of linear attention does twice what a token costs.
  return 2 * tokens * stack.shape.flops_per_token(sequence, stack.has_head);
}

}  // namespace baton
