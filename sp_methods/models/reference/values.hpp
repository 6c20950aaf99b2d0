// SPDX-License-Identifier: Apache-2.0
// A random model over all ranks: its inputs, each number a function of the seed, the tensor and its
// place, so that every process can make every rank's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sp_methods/models/stack.hpp"

namespace baton {

/// The inputs of a model on `ranks` ranks.
struct ModelProblem {
  Stack stack;
  int ranks = 1;
  std::uint64_t seed = 1;

  std::int64_t all_tokens() const { return stack.tokens * ranks; }
};

/// Sets `into` to the values from number `first` on of the input called `name` as if one rank had
/// all tokens and weights: "x", "d_y", "ids", "targets", "table", "last_norm", "head",
/// "first_moment_0", "second_moment_0".
///
/// Hidden states are N(0, 1), their gradients too; a table N(0, 1); a second moment is 1/2 plus the
/// square of N(0, 1). Tokens are uniform. What the stack has as bf16 is rounded to it.
void fill_input(const ModelProblem& problem, const std::string& name, std::int64_t first,
                std::span<float> into);

/// `count` values, from number `first` on, of the input called `name`, as fill_input sets them.
std::vector<float> input_values(const ModelProblem& problem, const std::string& name, std::int64_t first,
                                std::int64_t count);

/// Sets `into` to the weights of a layer from number `first` on, as its buffer has them: matrices
/// N(0, 1) / sqrt(rows), norms 1 + N(0, 1) / 8, taps N(0, 1) / sqrt(columns), numbers beside gates
/// N(0, 1), and zeros behind all of them. Half the variance of linear attention's keys, and of
/// their taps, is that of their queries.
void fill_weights(const ModelProblem& problem, int layer, std::int64_t first, std::span<float> into);

/// All weights of a layer, without the zeros behind them in its buffer.
std::vector<float> layer_weight_values(const ModelProblem& problem, int layer);

/// Sets `into` to the values from number `first` on of the input called `name` on one rank: its
/// tokens, its shard, or all.
void fill_rank_values(const ModelProblem& problem, const std::string& name, int rank, std::int64_t first,
                      std::span<float> into);

/// All values of the input called `name` on one rank.
std::vector<float> rank_values(const ModelProblem& problem, const std::string& name, int rank);

}  // namespace baton
