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
  /// The heads of queries that are solved, ascending; all if empty. Heads that share keys are
  /// solved together or not at all.
  std::vector<std::int64_t> heads;
  /// False if only o and lse are asked for.
  bool has_gradients = true;
  /// The first unit of work that this process takes.
  int part = 0;
  /// The number of processes: each takes every `parts`-th unit of work from `part` on.
  int parts = 1;
  /// Number of units of work that a process can do at once.
  int threads = 1;
  /// Runs `body` for 0 .. count - 1, in any order or at once.
  std::function<void(int count, const std::function<void(int)>& body)> for_each =
      [](int count, const std::function<void(int)>& body) {
        for (int i = 0; i < count; ++i) body(i);
      };
  /// Runs `body` for runs of tokens [first, last) that together are all tokens.
  void for_tokens(std::int64_t tokens, const std::function<void(std::int64_t, std::int64_t)>& body) const;
  /// Replaces numbers by their sums over all processes, on all of them.
  std::function<void(std::span<double>)> sum = [](std::span<double>) {};
};

/// The flop of one head of a layer by the references.
double oracle_flop(const LayerProblem& problem);

/// One layer over all ranks with its inputs and the results of some heads.
class LayerOracle {
 public:
  /// Solves the heads that `work` names. Collective over the processes of `work`. Throws nothing.
  explicit LayerOracle(const LayerProblem& problem, const OracleWork& work = {})
      : LayerOracle(problem, work, 0) {}

  const LayerProblem& problem() const { return inputs_.problem(); }
  /// The heads of queries that were solved, ascending.
  const std::vector<std::int64_t>& heads() const { return work_.heads; }
  /// The heads of the output called `name` that were solved, ascending.
  std::vector<std::int64_t> heads(const std::string& name) const;
  const OracleWork& work() const { return work_; }

  /// True for inputs with rows for each token: all but states, matrices, and weights and halos of a
  /// convolution.
  static bool has_rows(const std::string& name) {
    return name != "prefix" && name != "map_matrix" && name != "conv_w" && !name.starts_with(halo_prefix) &&
           !LayerProblem::is_state(name);
  }
  /// Fills the rows [tokens, heads, width] of an input with rows, from token `first` of `positions`
  /// on. q, k, v, g, beta, a, b and d_o are drawn. In heads that were not solved, `out` is random
  /// and lse is 10, so large that no weight overflows.
  void fill(const std::string& name, const Positions& positions, std::int64_t first,
            std::span<float> rows) const;

  /// The values of an input at the first `tokens` of `positions`, [tokens, heads, width] if it has
  /// rows. "prefix" is the
  /// state before each run of these tokens, [heads, d_k, d_v], or [heads, d_v, d_k] if maps have
  /// matrices. "map_matrix" is the matrix [d_k, d_k] of each head by which each run of these tokens
  /// maps a state. "halo_q", "halo_k" and "halo_v" have the rows before each run of these tokens.
  std::vector<float> input(const std::string& name, const Positions& positions, std::int64_t tokens) const;
  /// The values of an input at the tokens of one rank's share.
  std::vector<float> input(const std::string& name, const Positions& positions) const {
    return input(name, positions, problem().share.tokens);
  }

  /// Expected values [tokens, solved heads, width] of the output called o, dq, dk, dv, dg, dbeta,
  /// da or db at the first `tokens` of `positions`. A state has one row, whatever the positions.
  std::vector<double> expected(const std::string& name, const Positions& positions,
                               std::int64_t tokens) const;
  /// Expected values [tokens, solved heads, width] of an output at the tokens of one rank's share.
  std::vector<double> expected(const std::string& name, const Positions& positions) const {
    return expected(name, positions, problem().share.tokens);
  }

  /// Expected gradients of runs of a convolution's weights, by the place of the first one: those of
  /// the solved heads, sums over the tokens and heads of `part`.
  std::map<std::int64_t, std::vector<double>> expected_weights(const TensorPart& part) const;

  /// Root mean square of the terms that the expected values of an output are sums of
  /// (reference/roundings.hpp). The first call finds the terms, in this process alone; the result
  /// is 0 in a layer of so many numbers that no tensor of it cancels.
  double rms_of_terms(const std::string& name, const Positions& positions, std::int64_t tokens) const;
  /// The norm of the terms of an output in one solved head, at all positions.
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
  std::vector<float> halos(const std::string& name, const Positions& positions) const;
  void add_weights(std::map<std::int64_t, Tensor>& sums, std::int64_t head, std::int64_t first,
                   std::int64_t tokens) const;
  std::vector<float> prefixes(const Positions& positions) const;
  std::vector<float> matrices(const Positions& positions, std::int64_t tokens) const;
  std::vector<float> matrices_of_run(std::int64_t first, std::int64_t tokens) const;
  const std::vector<float>& state_before(std::int64_t token) const;

  LayerInputValues inputs_;
  OracleWork work_;
  std::uint64_t rounding_;  // the key of roundings, or 0
  Results results_;
  mutable std::optional<Results> squares_of_terms_;
  mutable std::map<std::int64_t, std::vector<float>> states_before_;  // by the token asked for
};

/// The least root mean square that values of softmax attention count as having at these positions;
/// 0 for linear attention. Outputs of a query that sees n keys are averages, of about n^(-1/2). If
/// they are far smaller, as gradients of q and k are where a query sees its own key alone, the
/// differences that they are made of cancel, and only their absolute error is small.
double least_rms(const LayerProblem& problem, const Positions& positions, std::int64_t tokens);

/// The least size that a result counts as, as a share of its terms. A smaller result is a
/// difference of terms, and only its absolute error is small. Kernels of bf16 tensors are off by a
/// third of the tolerance for terms as large as the result.
constexpr double least_of_terms(Dtype dtype) { return dtype == Dtype::bf16 ? 0.5 : 0.1; }

/// ||got - expected|| / ||expected||, or ||got|| if nothing is expected; infinite if a value is not
/// finite. Expected values with an rms below `least_rms` count as if they had it.
double relative_error(const std::vector<float>& got, const std::vector<double>& expected,
                      double least_rms = 0);

}  // namespace baton
