// SPDX-License-Identifier: Apache-2.0
#include "models/reference/values.hpp"

#include <cmath>
#include <functional>

#include "collectives/drawn_numbers.hpp"

namespace baton {
namespace {

std::uint64_t key_of_tensor(const ModelProblem& problem, const std::string& name) {
  return key_of(problem.seed, std::hash<std::string>{}(name));
}

/// The number behind the last '_' of a layer's buffer, and the text before it.
struct OfLayer {
  std::string what;
  int layer;
};

OfLayer parts_of(const std::string& name) {
  const auto at = name.rfind('_');
  return {name.substr(0, at), std::stoi(name.substr(at + 1))};
}

bool is_of_layer(const std::string& name) {
  return name.starts_with("weights_") || name.starts_with("first_moment_") ||
         name.starts_with("second_moment_");
}

/// As the stack's tensors hold it.
float as_held(const ModelProblem& problem, float x) {
  return problem.stack.layer.dtype == Dtype::bf16 ? from_bf16(to_bf16(x)) : x;
}

}  // namespace

std::vector<float> input_values(const ModelProblem& problem, const std::string& name, std::int64_t first,
                                std::int64_t count) {
  const std::uint64_t key = key_of_tensor(problem, name);
  const bool is_token = name == "ids" || name == "targets";
  const float scale = name == "head" ? 1 / std::sqrt(static_cast<float>(problem.stack.shape.width)) : 1.0F;
  std::vector<float> values(count);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t number = key + static_cast<std::uint64_t>(first + i);
    const float drawn = normal_value(number);
    if (is_token)
      values[i] =
          static_cast<float>(mixed(number) % static_cast<std::uint64_t>(problem.stack.shape.vocabulary));
    else if (name == "last_norm")
      values[i] = as_held(problem, 1 + drawn / 8);
    else if (name.starts_with("second_moment_"))
      values[i] = 0.5F + drawn * drawn;
    else if (name.starts_with("first_moment_"))
      values[i] = drawn;
    else
      values[i] = as_held(problem, scale * drawn);
  }
  return values;
}

std::vector<float> layer_weight_values(const ModelProblem& problem, int layer) {
  const ModelShape& shape = problem.stack.shape;
  std::vector<float> all;
  for (const Weight& weight : shape.weights(shape.layers[layer])) {
    const std::uint64_t key = key_of_tensor(problem, layer_buffer(weight.name, layer));
    const bool is_norm = weight.is_vector && weight.name != "gate_bias";
    const float scale =
        weight.is_vector ? (is_norm ? 0.125F : 1.0F) : 1 / std::sqrt(static_cast<float>(weight.rows));
    for (std::int64_t i = 0; i < weight.count(); ++i)
      all.push_back(as_held(
          problem, (is_norm ? 1.0F : 0.0F) + scale * normal_value(key + static_cast<std::uint64_t>(i))));
  }
  return all;
}

std::vector<float> rank_values(const ModelProblem& problem, const std::string& name, int rank) {
  const Stack& stack = problem.stack;
  const ModelShape& shape = stack.shape;
  if (name == "x" || name == "d_y") {
    const std::int64_t count = stack.tokens * shape.width;
    return input_values(problem, name, rank * count, count);
  }
  if (name == "ids" || name == "targets")
    return input_values(problem, name, rank * stack.tokens, stack.tokens);
  if (!is_of_layer(name)) {
    const std::int64_t count = name == "last_norm" ? shape.width : shape.width * shape.vocabulary;
    return input_values(problem, name, 0, count);
  }
  const auto [what, layer] = parts_of(name);
  const std::int64_t whole = stack.weight_count(shape.layers[layer], problem.ranks);
  const std::int64_t shard = stack.shards_weights ? whole / problem.ranks : whole;
  const std::int64_t first = stack.shards_weights ? rank * shard : 0;
  if (what != "weights") return input_values(problem, name, first, shard);
  std::vector<float> weights = layer_weight_values(problem, layer);
  weights.resize(whole, 0);  // padding
  return {weights.begin() + first, weights.begin() + first + shard};
}

}  // namespace baton
