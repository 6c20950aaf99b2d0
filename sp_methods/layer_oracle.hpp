// SPDX-License-Identifier: Apache-2.0
// The results of a random layer by the double-precision references over the whole sequence, for
// some of its heads.
//
//   for each head and sequence: draw q, k, v, g, d_o; reference forward and backward in double,
//   cut into units of work: columns of v, or blocks of queries
//   the sum over the units, and over the processes that took some of them, is the result
//   a rank's tensors are the rows of its positions
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sp_methods/layer_inputs.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton {

/// How the work of an oracle is shared.
struct OracleWork {
  /// The heads of queries that are solved, ascending; all if empty. Those that share keys are
  /// solved together or not at all.
  std::vector<std::int64_t> heads;
  /// False if only o and lse are asked for.
  bool has_gradients = true;
  /// This process takes every `parts`-th unit of work, from `part` on.
  int part = 0;
  int parts = 1;
  /// Units of work that a process can do at once.
  int threads = 1;
  /// Runs `body` for 0 .. count - 1, in any order or at once.
  std::function<void(int count, const std::function<void(int)>& body)> for_each =
      [](int count, const std::function<void(int)>& body) {
        for (int i = 0; i < count; ++i) body(i);
      };
  /// Runs `body` for runs of tokens [first, last) that make up all of them.
  void for_tokens(std::int64_t tokens, const std::function<void(std::int64_t, std::int64_t)>& body) const;
  /// Adds up the numbers of all processes, on all of them.
  std::function<void(std::span<double>)> sum = [](std::span<double>) {};
};

/// The flop of one head of a layer by the references.
double oracle_flop(const LayerProblem& problem);

/// One layer over all ranks with its inputs and the results of some heads.
class LayerOracle {
 public:
  /// Solves. Collective over the processes of `work`. Throws nothing.
  explicit LayerOracle(const LayerProblem& problem, const OracleWork& work = {})
      : LayerOracle(problem, work, 0) {}

  const LayerProblem& problem() const { return inputs_.problem(); }
  /// The heads of queries that were solved, ascending.
  const std::vector<std::int64_t>& heads() const { return work_.heads; }
  /// The heads of the output called `name` that were solved, ascending.
  std::vector<std::int64_t> heads(const std::string& name) const;
  const OracleWork& work() const { return work_; }

  /// True for inputs with rows for each token. The prefix and the matrices have none.
  static bool has_rows(const std::string& name) { return name != "prefix" && name != "map_matrix"; }
  /// Fills the rows from token `first` of `positions` on [tokens, heads, width] of an input with
  /// rows: q, k, v, g, beta, a, b or d_o, which are drawn, out or lse. In heads that were not
  /// solved, `out` is random and lse is 10, so large that no weight overflows.
  void fill(const std::string& name, const Positions& positions, std::int64_t first,
            std::span<float> rows) const;

  /// The values [tokens, heads, width] of an input called q, k, v, g, beta, a, b, d_o, out or lse
  /// of the tokens at `positions`; of `prefix` the states [heads, d_k, d_v] before each run of
  /// these tokens, [heads, d_v, d_k] where maps have matrices, as the tokens before leave them; of
  /// `map_matrix` the matrices [heads, d_k, d_k] by which these tokens, one run, map a state.
  std::vector<float> input(const std::string& name, const Positions& positions) const;

  /// What the output called o, dq, dk, dv, dg, dbeta, da or db must hold at the first `tokens` of
  /// these positions, those of a share if not said, in the solved heads [tokens, solved heads,
  /// width].
  std::vector<double> expected(const std::string& name, const Positions& positions,
                               std::int64_t tokens) const;
  std::vector<double> expected(const std::string& name, const Positions& positions) const {
    return expected(name, positions, problem().share.tokens);
  }

  /// The root mean square of the terms that these results are sums of (reference/roundings.hpp).
  /// Found when it is asked for, by this process alone; 0 in a layer of so many numbers that no
  /// tensor of it cancels.
  double rms_of_terms(const std::string& name, const Positions& positions, std::int64_t tokens) const;
  /// The norm of those of one solved head, at all positions.
  double norm_of_terms(const std::string& name, std::int64_t head) const;

 private:
  using Tensor = std::vector<double>;                                     // [tokens, width] of one head
  using Results = std::map<std::string, std::map<std::int64_t, Tensor>>;  // by name and head

  LayerOracle(const LayerProblem& problem, const OracleWork& work, std::uint64_t rounding);

  void solve_head(std::int64_t head, std::int64_t first_token, std::int64_t tokens);
  void fill_saved(const std::string& name, const Positions& positions, std::int64_t first,
                  std::span<float> rows) const;
  std::vector<double> gathered(const std::map<std::int64_t, Tensor>& heads, std::int64_t width,
                               const Positions& positions, std::int64_t tokens) const;
  const Results& squares_of_terms() const;
  std::vector<float> prefixes(const Positions& positions) const;
  std::vector<float> matrices(std::int64_t token) const;
  const std::vector<float>& state_before(std::int64_t token) const;

  LayerInputValues inputs_;
  OracleWork work_;
  std::uint64_t rounding_;  // the key of roundings, or 0
  Results results_;
  mutable std::optional<Results> squares_of_terms_;
  mutable std::map<std::int64_t, std::vector<float>> states_before_;  // by the token asked for
};

/// The share of its terms that a result counts as at least: a smaller one is a difference of them,
/// and only its absolute error is small. Kernels of bf16 tensors are off by a third of the
/// tolerance for terms as large as the result.
constexpr double least_of_terms(Dtype dtype) { return dtype == Dtype::bf16 ? 0.5 : 0.1; }

/// ||got - expected|| / ||expected||, or ||got|| where nothing is expected; infinite where a value
/// is not finite. Expected values of less than `least_rms` count as if they were of it.
double relative_error(const std::vector<float>& got, const std::vector<double>& expected,
                      double least_rms = 0);

}  // namespace baton
