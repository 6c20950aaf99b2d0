// SPDX-License-Identifier: Apache-2.0
#include "harness/models/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "sp_methods/layer_oracle.hpp"

namespace baton {
namespace {

/// A run of an output that is compared separately.
struct Part {
  std::string name;
  std::int64_t first, count;
};

/// The parts of an output: each weight of a buffer of gradients, or all of any other output.
std::vector<Part> parts_of(const Buffer& buffer, const Stack& stack) {
  if (!buffer.name.starts_with("d_weights_") || stack.shards_weights) return {{buffer.name, 0, buffer.count}};
  std::vector<Part> parts;
  std::int64_t at = 0;
  const int layer = std::stoi(buffer.name.substr(buffer.name.rfind('_') + 1));
  for (const Weight& weight : stack.shape.weights(stack.shape.layers[layer])) {
    parts.push_back({fmt::format("{} ({})", buffer.name, weight.name), at, weight.count()});
    at += weight.count();
  }
  return parts;
}

/// The tolerance of one layer whose tensors are bf16; errors of layers are independent. Two layers
/// of width 128 were off by 9.9e-3 (docs/decisions/0031).
constexpr double bf16_tolerance = 1.5e-2;

}  // namespace

double model_tolerance(const ModelOracle& oracle) {
  const int layers = std::max(2, oracle.problem().stack.shape.count());
  if (oracle.problem().stack.layer.dtype == Dtype::bf16) return bf16_tolerance * std::sqrt(layers);
  // The norm of a small output enlarges its error, and the gradient through that norm, which is as
  // much larger, makes that one token a large part of the sum.
  const double enlarged = 4e-9 * oracle.enlargement() * oracle.enlargement();
  return 5e-6 * layers + enlarged;
}

namespace {

/// Writes one input, a run at a time into the same memory, drawn by several threads.
void write_input(Executor& executor, int rank, const std::string& name, const Slice& slice,
                 const ModelProblem& problem, const OracleWork& work) {
  constexpr std::int64_t most = 1 << 22;
  std::vector<float> values(std::min(most, slice.count));
  for (std::int64_t first = 0; first < slice.count; first += most) {
    const auto part = std::span(values).first(std::min(most, slice.count - first));
    work.for_tokens(std::ssize(part), [&](std::int64_t from, std::int64_t to) {
      fill_rank_values(problem, name, rank, first + from, part.subspan(from, to - from));
    });
    executor.write(rank, slice.part(first, std::ssize(part)), part);
  }
}

}  // namespace

void write_model(Executor& executor, std::span<const Schedule> schedules, const ModelProblem& problem,
                 const OracleWork& work) {
  for (const int rank : executor.local_ranks())
    for (const Buffer& buffer : schedules[rank].buffers()) {
      if (buffer.role == Role::scratch) continue;
      const Slice slice = schedules[rank].buffer(buffer.name);
      if (buffer.role == Role::output)
        executor.scatter(rank, slice, 1, poison);
      else
        write_input(executor, rank, buffer.name, slice, problem, work);
    }
}

Comparison compare_model(const Executor& executor, std::span<const Schedule> schedules,
                         const ModelOracle& oracle) {
  const Stack& stack = oracle.problem().stack;
  Comparison result;
  result.tokens = stack.tokens;
  result.heads.resize(stack.shape.share(stack.shape.layers.front(), 1).heads);
  std::iota(result.heads.begin(), result.heads.end(), 0);
  result.tolerance = model_tolerance(oracle);
  for (const int rank : executor.local_ranks())
    for (const Buffer& buffer : schedules[rank].buffers()) {
      if (buffer.role != Role::output || buffer.count == 0) continue;
      std::vector<float> got(buffer.count);
      executor.read(got, rank, schedules[rank].buffer(buffer.name));
      const std::vector<double> expected = oracle.expected(buffer.name, rank);
      for (const auto& [name, first, count] : parts_of(buffer, stack)) {
        const std::vector<float> part(got.begin() + first, got.begin() + first + count);
        const std::vector<double> right(expected.begin() + first, expected.begin() + first + count);
        double error = relative_error(part, right);
        if (error > result.tolerance && std::isfinite(error)) {
          const double terms = oracle.rms_of_terms(buffer.name, rank, first, count);
          error = std::min(error, relative_error(part, right, least_of_terms(Dtype::f32) * terms));
        }
        result.relative_error = std::max(result.relative_error, error);
        if (error <= result.tolerance) continue;
        if (result.wrong++ == 0)
          result.first = fmt::format("rank {}, {}: relative error {:.1e}, at most {:.1e} is right", rank,
                                     name, error, result.tolerance);
      }
    }
  return result;
}

}  // namespace baton
