// SPDX-License-Identifier: Apache-2.0
// A random model over all ranks: its inputs, each number a function of the seed, the tensor and its
// place, so that every process can make every rank's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/stack.hpp"

namespace baton {

/// The inputs of a model on `ranks` ranks.
struct ModelProblem {
  Stack stack;
  int ranks = 1;
  std::uint64_t seed = 1;

  std::int64_t all_tokens() const { return stack.tokens * ranks; }
};

/// `count` values from number `first` on of the input called `name` as if one rank had all tokens
/// and weights: "x", "d_y", "ids", "targets", "table", "last_norm", "head", "first_moment_0",
/// "second_moment_0".
///
/// Hidden states are N(0, 1), their gradients too; a table N(0, 1); a second moment is 1/2 plus the
/// square of N(0, 1). Tokens are uniform. What the stack has as bf16 is rounded to it.
std::vector<float> input_values(const ModelProblem& problem, const std::string& name, std::int64_t first,
                                std::int64_t count);

/// All weights of a layer as its buffer has them, without padding: matrices N(0, 1) / sqrt(rows),
/// norms 1 + N(0, 1) / 8, the bias of gates N(0, 1). Half the variance of linear attention's keys
/// is that of their queries.
std::vector<float> layer_weight_values(const ModelProblem& problem, int layer);

/// The values of the input called `name` on one rank: its tokens, its shard, or all.
std::vector<float> rank_values(const ModelProblem& problem, const std::string& name, int rank);

}  // namespace baton
