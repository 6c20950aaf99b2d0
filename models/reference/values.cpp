// SPDX-License-Identifier: Apache-2.0
#include "models/reference/values.hpp"

#include <cmath>
#include <functional>
#include <numbers>

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

/// Rounded as the stack's tensors hold numbers.
void round_as_held(const ModelProblem& problem, std::vector<float>& values) {
  if (problem.stack.layer.dtype != Dtype::bf16) return;
  for (float& x : values) x = from_bf16(to_bf16(x));
}

}  // namespace

std::vector<float> input_values(const ModelProblem& problem, const std::string& name, std::int64_t first,
                                std::int64_t count) {
  const std::uint64_t key = key_of_tensor(problem, name) + static_cast<std::uint64_t>(first);
  std::vector<float> values(count);
  const auto set = [&](const auto& value) {
    for (std::uint64_t i = 0; float& x : values) x = value(key + i++);
  };
  if (name == "ids" || name == "targets") {
    const auto words = static_cast<std::uint64_t>(problem.stack.shape.vocabulary);
    set([&](std::uint64_t number) { return static_cast<float>(mixed(number) % words); });
    return values;
  }
  const float scale = name == "head" ? 1 / std::sqrt(static_cast<float>(problem.stack.shape.width)) : 1.0F;
  if (name == "last_norm")
    set([](std::uint64_t number) { return 1 + normal_value(number) / 8; });
  else if (name.starts_with("second_moment_"))
    set([](std::uint64_t number) { return 0.5F + normal_value(number) * normal_value(number); });
  else
    set([&](std::uint64_t number) { return scale * normal_value(number); });
  if (!is_of_layer(name)) round_as_held(problem, values);
  return values;
}

std::vector<float> layer_weight_values(const ModelProblem& problem, int layer) {
  const ModelShape& shape = problem.stack.shape;
  const Attention kind = shape.layers[layer];
  const auto key_of_weight = [&](const std::string& name) {
    return key_of_tensor(problem, layer_buffer(name, layer));
  };
  std::vector<float> all(shape.parameters(kind));
  float* into = all.data();
  for (const Weight& weight : shape.weights(kind)) {
    const std::uint64_t key = key_of_weight(weight.name), of_queries = key_of_weight("query");
    const bool is_norm = weight.is_vector && weight.name != "gate_bias";
    // Otherwise a first token's only score may be near zero, and the norm of its output enlarges
    // rounding without bound.
    const bool follows_queries = weight.name == "key" && kind == Attention::linear;
    const float scale =
        weight.is_vector ? (is_norm ? 0.125F : 1.0F) : 1 / std::sqrt(static_cast<float>(weight.rows));
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(weight.count()); ++i) {
      float drawn = normal_value(key + i);
      if (follows_queries) drawn = (drawn + normal_value(of_queries + i)) * std::numbers::sqrt2_v<float> / 2;
      *into++ = (is_norm ? 1.0F : 0.0F) + scale * drawn;
    }
  }
  round_as_held(problem, all);
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
