// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/models/reference/values.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "collectives/drawn_numbers.hpp"

namespace baton {
namespace {

std::uint64_t key_of_tensor(const ModelProblem& problem, const std::string& name) {
  return key_of(problem.seed, std::hash<std::string>{}(name));
}

/// The number behind the last '_' of a layer's buffer.
int layer_of(const std::string& name) { return std::stoi(name.substr(name.rfind('_') + 1)); }

bool is_of_layer(const std::string& name) {
  return name.starts_with("weights_") || name.starts_with("first_moment_") ||
         name.starts_with("second_moment_");
}

/// Rounds values to bf16 if the stack's tensors are bf16.
void round_as_held(const ModelProblem& problem, std::span<float> values) {
  if (problem.stack.layer.dtype != Dtype::bf16) return;
  for (float& x : values) x = from_bf16(to_bf16(x));
}

/// The run of elements of an input of all ranks that one rank has.
struct OwnRun {
  std::int64_t first, count;
};

OwnRun own_run(const ModelProblem& problem, const std::string& name, int rank) {
  const Stack& stack = problem.stack;
  const ModelShape& shape = stack.shape;
  const auto of_tokens = [&](std::int64_t width) {
    return OwnRun{rank * stack.tokens * width, stack.tokens * width};
  };
  if (name == "x" || name == "d_y") return of_tokens(shape.width);
  if (name == "ids" || name == "targets") return of_tokens(1);
  if (name == "last_norm") return {0, shape.width};
  if (!is_of_layer(name)) return {0, shape.width * shape.vocabulary};
  const std::int64_t whole = stack.weight_count(shape.layers[layer_of(name)], problem.ranks);
  if (!stack.shards_weights) return {0, whole};
  return {rank * (whole / problem.ranks), whole / problem.ranks};
}

/// One weight of a layer as it is drawn.
class DrawnWeight {
 public:
  DrawnWeight(const ModelShape& shape, Attention kind, const Weight& weight, std::uint64_t key,
              std::uint64_t key_of_queries)
      : kind_(weight.kind), key_(key) {
    const LayerShape share = shape.share(kind, 1);
    const bool is_key = kind == Attention::linear && weight.name == "key";
    if (is_key) following_ = {0, weight.count(), key_of_queries};
    if (kind_ == Weight::Kind::taps) {
      const std::int64_t queries = share.query_heads() * share.d_k * weight.columns;
      following_ = {queries, 2 * queries, key - static_cast<std::uint64_t>(queries)};
    }
    using enum Weight::Kind;
    scale_ = kind_ == norm ? 0.125F
             : kind_ == bias
                 ? 1.0F
                 : 1 / std::sqrt(static_cast<float>(kind_ == taps ? weight.columns : weight.rows));
  }

  float at(std::int64_t i) const {
    float drawn = normal_value(key_ + static_cast<std::uint64_t>(i));
    if (following_.first <= i && i < following_.end)
      drawn = (drawn + normal_value(following_.key + static_cast<std::uint64_t>(i))) *
              std::numbers::sqrt2_v<float> / 2;
    return (kind_ == Weight::Kind::norm ? 1.0F : 0.0F) + scale_ * drawn;
  }

 private:
  /// Numbers, half of whose variance is that of others: keys follow queries. Otherwise a first
  /// token's only score may be near zero, and the norm of its output enlarges rounding without
  /// bound.
  struct Following {
    std::int64_t first = 0, end = 0;
    std::uint64_t key = 0;
  };

  Weight::Kind kind_;
  std::uint64_t key_;
  Following following_;
  float scale_;
};

}  // namespace

void fill_input(const ModelProblem& problem, const std::string& name, std::int64_t first,
                std::span<float> into) {
  const std::uint64_t key = key_of_tensor(problem, name) + static_cast<std::uint64_t>(first);
  const auto set = [&](const auto& value) {
    for (std::uint64_t i = 0; float& x : into) x = value(key + i++);
  };
  if (name == "ids" || name == "targets") {
    const auto words = static_cast<std::uint64_t>(problem.stack.shape.vocabulary);
    return set([&](std::uint64_t number) { return static_cast<float>(mixed(number) % words); });
  }
  const float scale = name == "head" ? 1 / std::sqrt(static_cast<float>(problem.stack.shape.width)) : 1.0F;
  if (name == "last_norm")
    set([](std::uint64_t number) { return 1 + normal_value(number) / 8; });
  else if (name.starts_with("second_moment_"))
    set([](std::uint64_t number) { return 0.5F + normal_value(number) * normal_value(number); });
  else
    set([&](std::uint64_t number) { return scale * normal_value(number); });
  if (!is_of_layer(name)) round_as_held(problem, into);
}

std::vector<float> input_values(const ModelProblem& problem, const std::string& name, std::int64_t first,
                                std::int64_t count) {
  std::vector<float> values(count);
  fill_input(problem, name, first, values);
  return values;
}

void fill_weights(const ModelProblem& problem, int layer, std::int64_t first, std::span<float> into) {
  const ModelShape& shape = problem.stack.shape;
  const LayerKind kind = shape.layers[layer];
  const auto key_of_weight = [&](const std::string& name) {
    return key_of_tensor(problem, layer_buffer(name, layer));
  };
  std::fill(into.begin(), into.end(), 0.0F);
  std::int64_t at = 0;  // of the weight within the layer
  for (const Weight& weight : shape.weights(kind)) {
    const DrawnWeight drawn(shape, kind, weight, key_of_weight(weight.name), key_of_weight("query"));
    const std::int64_t end = std::min(at + weight.count(), first + std::ssize(into));
    for (std::int64_t i = std::max(at, first); i < end; ++i) into[i - first] = drawn.at(i - at);
    at += weight.count();
  }
  round_as_held(problem, into);
}

std::vector<float> layer_weight_values(const ModelProblem& problem, int layer) {
  std::vector<float> all(problem.stack.shape.parameters(problem.stack.shape.layers[layer]));
  fill_weights(problem, layer, 0, all);
  return all;
}

void fill_rank_values(const ModelProblem& problem, const std::string& name, int rank, std::int64_t first,
                      std::span<float> into) {
  const std::int64_t from = own_run(problem, name, rank).first + first;
  if (name.starts_with("weights_")) return fill_weights(problem, layer_of(name), from, into);
  fill_input(problem, name, from, into);
}

std::vector<float> rank_values(const ModelProblem& problem, const std::string& name, int rank) {
  std::vector<float> values(own_run(problem, name, rank).count);
  fill_rank_values(problem, name, rank, 0, values);
  return values;
}

}  // namespace baton
