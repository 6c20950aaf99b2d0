// SPDX-License-Identifier: Apache-2.0
// One head of a random layer solved by the references, in units of work that threads and processes
// share: columns of v of linear attention, blocks of queries of softmax attention.
//
//   for each unit: run the recurrence of its columns or queries, and add to the sums
//   o and dv have columns of their own; the other gradients are sums over the units
//
// Cost: that of the reference, once over all units.
// Source: the references (kernels/reference/attention.hpp, kernels/reference/delta_rule.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "sp_methods/kernels/reference/convolution.hpp"
#include "sp_methods/layer_inputs.hpp"

namespace baton {

/// One head's inputs over a run of tokens, [tokens, width] each.
struct HeadInputs {
  /// Draws the inputs of `tokens` tokens from `first` on. A `rounding` other than 0 rounds them,
  /// and results of the references, at random.
  HeadInputs(const LayerInputValues& inputs, std::int64_t head, std::int64_t first, std::int64_t tokens,
             std::uint64_t rounding = 0);
  /// Makes a head of gated linear attention whose inputs the caller sets.
  explicit HeadInputs(const LayerShape& of) : attention(Attention::linear), rule(Rule::decay), shape(of) {}

  Attention attention;
  Rule rule;
  LayerShape shape;
  Mask mask;
  std::uint64_t rounding = 0;
  std::vector<double> q, k, v, g, d_o, beta, a, b;
  /// The state before the tokens and the gradient of the state behind them, [d_k, d_v] each, or
  /// [d_v, d_k] where maps have matrices. Empty means zero.
  std::vector<double> state, d_state;
  /// What q, k and v are made from, in this order, if the layer has a convolution.
  std::vector<ReferenceConvolution> convolutions;

 private:
  void convolve(const LayerInputValues& inputs, std::int64_t head, std::int64_t history);
};

/// One head's results, to which several threads add. A lock protects a run of elements, and each
/// thread starts at another run, so that threads rarely meet.
class HeadSums {
 public:
  /// Sums for the results of `head`. The state behind its tokens is one of them if a gradient of it
  /// is given, and the gradient of the state before them if one comes in.
  HeadSums(const LayerProblem& problem, const HeadInputs& head, bool has_gradients);

  void add(const std::string& name, const std::vector<double>& part, int unit);
  /// Adds `part`, the columns [first, last) of rows of `width`, to which no other thread adds.
  void add_columns(const std::string& name, const std::vector<double>& part, std::int64_t width,
                   std::int64_t first, std::int64_t last);

  std::map<std::string, std::vector<double>>& all() { return sums_; }

 private:
  static constexpr std::size_t runs = 64;
  std::map<std::string, std::vector<double>> sums_;
  std::mutex locks_[runs];
};

/// Unit number `unit` of `units` units of work.
struct UnitOfWork {
  int unit = 0;
  int units = 1;
};

/// The most units that a head of this layer can be cut into.
int most_units(const LayerProblem& problem);

/// Adds the results of one unit of work to `sums`.
void solve_unit(HeadSums& sums, const HeadInputs& head, bool has_gradients, const UnitOfWork& work);

/// Turns gradients of q, k and v into those of the rows that a convolution makes them from. Returns
/// the gradients of its sums [tokens, 2 d_k + d_v]; empty without a convolution.
std::vector<double> solve_convolution(std::map<std::string, std::vector<double>>& gradients,
                                      const HeadInputs& head);

/// The places of the first weight of a head's q, of its k and of its v among a convolution's
/// weights.
std::array<std::int64_t, 3> first_weights(const LayerShape& shape, std::int64_t head);

/// The state behind a head's tokens: [d_k, d_v], or [d_v, d_k] if maps have matrices.
std::vector<double> state_behind(const HeadInputs& head);

/// The matrix [d_k, d_k] by which a head's tokens map a state.
std::vector<double> matrix_of(const HeadInputs& head);

}  // namespace baton
