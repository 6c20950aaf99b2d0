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

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "sp_methods/layer_inputs.hpp"

namespace baton {

/// One head's inputs over a run of tokens, [tokens, width] each.
struct HeadInputs {
  /// Draws those of `tokens` tokens from `first` on. A key other than 0 rounds them at random, and
  /// what the references make of them.
  HeadInputs(const LayerInputValues& inputs, std::int64_t head, std::int64_t first, std::int64_t tokens,
             std::uint64_t rounding = 0);
  /// For values from elsewhere, of gated linear attention.
  explicit HeadInputs(const LayerShape& of) : attention(Attention::linear), rule(Rule::decay), shape(of) {}

  Attention attention;
  Rule rule;
  LayerShape shape;
  std::uint64_t rounding = 0;
  std::vector<double> q, k, v, g, d_o, beta, a, b;
  /// Of gated linear attention: the state before the tokens and the gradient of the state behind
  /// them [d_k, d_v]. Empty means zero.
  std::vector<double> state, d_state;
};

/// One head's results, to which several threads add. Locks are of runs of elements, and each thread
/// starts at another one, so that threads rarely meet.
class HeadSums {
 public:
  HeadSums(const LayerProblem& problem, std::int64_t tokens, bool has_gradients);

  void add(const std::string& name, const std::vector<double>& part, int unit);
  /// Adds columns from `first` on to rows of `width`, which no other thread adds to.
  void add_columns(const std::string& name, const std::vector<double>& part, std::int64_t width,
                   std::int64_t first, std::int64_t last);

  std::map<std::string, std::vector<double>>& all() { return sums_; }

 private:
  static constexpr std::size_t runs = 64;
  std::map<std::string, std::vector<double>> sums_;
  std::mutex locks_[runs];
};

/// One of several units of work.
struct UnitOfWork {
  int unit = 0;
  int units = 1;
};

/// The most units that a head of this layer can be cut into.
int most_units(const LayerProblem& problem);

/// Adds the results of one unit.
void solve_unit(HeadSums& sums, const HeadInputs& head, bool has_gradients, const UnitOfWork& work);

/// The state behind a head's tokens, zero before them: [d_k, d_v], [d_v, d_k] where maps have
/// matrices.
std::vector<double> state_behind(const HeadInputs& head);

/// The matrix [d_k, d_k] by which a head's tokens map a state.
std::vector<double> matrix_of(const HeadInputs& head);

}  // namespace baton
