// SPDX-License-Identifier: Apache-2.0
// Random layers for the tests: fp32 inputs of all ranks, the oracle's answer, the error between two
// answers.
//
//   inputs are drawn in fp32 and given to the oracle as the same numbers in double
//   rank p of P takes tokens [T p / P, T (p + 1) / P): its tensors start at an offset
//
// Cost: the oracle's.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "sp_methods/kernels/reference/attention.hpp"
#include "sp_methods/kernels/shape.hpp"

namespace baton::test {

/// How a test's log gates are drawn.
enum class Gates { layer, unit_normal, constant, near_zero, near_one, mixed };

/// One layer to test: its shape over all ranks, its gates, its seed.
struct Problem {
  LayerShape shape;
  Gates gates = Gates::layer;
  float constant = 0.0F;  ///< The log gate of Gates::constant.
  unsigned seed = 1;
  std::string name() const;
};

/// All inputs and gradients of one layer, [tokens, heads, width] each.
struct Tensors {
  std::vector<float> q, k, v, g, d_o;
  GlaInputs inputs(const LayerShape& shape, std::int64_t first_token) const;
};

/// All results of one layer, [tokens, heads, width] each, either precision.
template <class Number>
struct Results {
  std::vector<Number> o, dq, dk, dv, dg;
};

/// Draws the inputs.
Tensors draw(const Problem& problem);

/// The oracle's results. A key other than 0 rounds the inputs at random (reference/roundings.hpp).
Results<double> reference(const Tensors& tensors, const LayerShape& shape, std::uint64_t rounding = 0);

/// The same for causal softmax attention; dg stays empty.
Results<double> softmax_reference(const Tensors& tensors, const LayerShape& shape);

/// Room for the results of the whole layer, filled with NaN.
Results<float> room(const LayerShape& shape);

/// Frobenius norm of x - y over that of y, or over `least_norm` where y has less.
double relative_error(const std::vector<float>& x, const std::vector<double>& y, double least_norm = 0);

/// The same of a result in bf16 and what `reference` returns. Where it is above `tolerance`, that
/// counts as at least half of the terms that it is a sum of (reference/roundings.hpp).
double bf16_error(const std::vector<float>& x, const Results<double>& exact,
                  std::vector<double> Results<double>::*tensor, const Tensors& tensors,
                  const LayerShape& shape, double tolerance);

/// One head of x [tokens, heads, width] in double.
std::vector<double> head_of(const std::vector<float>& x, std::int64_t head, std::int64_t heads,
                            std::int64_t width);

/// Puts one head's values back into x [tokens, heads, width].
void put_head(std::vector<double>& x, const std::vector<double>& values, std::int64_t head,
              std::int64_t heads, std::int64_t width);

/// Keeps the greatest error of `key` for the summary of the run.
void note_error(const std::string& key, double error);

/// The tokens of rank p of P: the shape with that many tokens, and the first of them.
struct RankTokens {
  LayerShape shape;
  std::int64_t first;
};
RankTokens rank_tokens(const LayerShape& whole, int rank, int ranks);

/// The gradients' pointers at a rank's first token.
GlaGradients gradients_at(Results<float>& results, const LayerShape& shape, std::int64_t first);

/// Expects every result within the tolerance and keeps the greatest errors for the summary of the
/// run.
void expect_close(const Results<float>& results, const Results<double>& oracle, const Problem& problem,
                  const std::string& what);

/// The problems every operator must solve: all gate kinds, awkward shapes, gentle and strong gates.
std::vector<Problem> problems();

/// A random problem, new in every run.
Problem held_out();

}  // namespace baton::test
