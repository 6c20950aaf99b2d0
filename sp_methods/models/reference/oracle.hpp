// SPDX-License-Identifier: Apache-2.0
// A random model in double precision over all tokens: the results that every rank's schedule must
// leave. It shares no code with the schedules but the weights' table, and its attention is the
// token-level reference of the layer.
//
// Cost: 6 flop a weight and token, 25 d_k d_v a head and token of linear attention, without
// threads.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sp_methods/models/reference/values.hpp"

namespace baton {

/// The results of a random model.
class ModelOracle {
 public:
  explicit ModelOracle(const ModelProblem& problem) : ModelOracle(problem, 0) {}

  const ModelProblem& problem() const { return problem_; }

  /// The values that the output called `name` (sp_methods/models/stack.hpp) must have on a rank.
  /// Throws std::out_of_range if there is no such output.
  std::vector<double> expected(const std::string& name, int rank) const;

  /// Root mean square of the terms that `count` numbers of an output, from number `first` on, are
  /// sums of (roundings.hpp). The first call solves the model several times.
  double rms_of_terms(const std::string& name, int rank, std::int64_t first, std::int64_t count) const;

  /// The loss whose gradients the model makes: with a head the mean loss, else the sum over y (.)
  /// d_y; 0 without a head in a forward pass alone.
  double loss() const { return loss_; }

  /// The largest enlargement of a layer (sp_methods/models/reference/layers.hpp), at least 1.
  double enlargement() const { return enlargement_; }

 private:
  using OutputOfRank = std::pair<std::string, int>;

  ModelOracle(const ModelProblem& problem, std::uint64_t rounding);
  std::vector<OutputOfRank> outputs() const;

  ModelProblem problem_;
  /// Outputs with rows of all tokens, by name.
  std::map<std::string, std::vector<double>> rows_;
  /// Gradients of weights by name, one a rank from its tokens.
  std::map<std::string, std::vector<std::vector<double>>> sums_;
  double loss_ = 0, enlargement_ = 1;
  mutable std::map<OutputOfRank, std::vector<double>> squares_of_terms_;
};

/// The floating-point operations of a model's oracle.
double model_oracle_flop(const ModelProblem& problem);

}  // namespace baton
