// SPDX-License-Identifier: Apache-2.0
// Comparisons of a layer's outputs with those of another method, of all heads at full length: for
// each token and head of an output one random projection over the channels, gathered by position,
// against the first method of the comparison group that passed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "harness/cases/verify.hpp"
#include "sp_methods/layer_oracle.hpp"

namespace baton {

/// A random projection of the outputs of one method: for each output tensor and each of its tokens
/// and heads, the sum over the channels with random signs.
struct LayerSketch {
  std::string method;
  /// The sums of each output tensor [tokens of all ranks, heads], by position in the sequence;
  /// those of a state are [heads].
  std::map<std::string, std::vector<double>> tensors;

  /// Makes room for the sums of a tensor, which its parts on several ranks share.
  void begin(const std::string& name, const LayerProblem& problem);
  /// Adds the rows of one rank's tokens from `first` on [tokens, heads, width]. Threads may add
  /// rows of different tokens at once.
  void add(const std::string& name, std::int64_t first, std::span<const float> rows,
           const LayerProblem& problem, const Positions& positions);
};

/// A part of the key of sketches. A backward pass alone of softmax attention may read the outputs
/// of a forward pass, which are drawn for heads that are not solved: its gradients there are not
/// those of a method that makes its own forward pass. Linear attention reads no outputs.
std::string given_outputs(const std::vector<Schedule>& schedules);

/// Returns the least norm that the values of one head of an output count as having; 0 if unknown.
using LeastNorm = std::function<double(const std::string& name, std::int64_t head)>;

/// Compares the sketches of two methods for the `tokens` of all ranks, each with results within
/// `tolerance` of right ones, head by head; `wrong` counts heads of tensors.
Comparison compare_sketches(const LayerSketch& got, const LayerSketch& other, std::int64_t tokens,
                            double tolerance, const LeastNorm& least_norm);

}  // namespace baton
