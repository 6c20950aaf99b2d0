// SPDX-License-Identifier: Apache-2.0
// Random layers with a delta rule for the tests: keys of length one, strengths in (0, 1), a state
// before the first token and a gradient behind the last, and the oracle's answer.
//
//   g = -gate U, U uniform in [0, 1) or all 1;   beta = sigmoid(normal);   all else normal
//
// Cost: the oracle's.
#pragma once

#include <string>
#include <vector>

#include "sp_methods/kernels/delta.hpp"
#include "sp_methods/kernels/reference/delta_rule.hpp"
#include "tests/sp_methods/kernels/gla_problem.hpp"

namespace baton::test {

/// One layer to test: its shape over all ranks, its strongest log gate, its seed.
struct DeltaProblem {
  LayerShape shape;
  float gate = 0.0F;
  unsigned seed = 1;
  bool has_equal_gates = false;  ///< Every gate is the strongest.
  std::string name() const;
};

/// All inputs of one layer.
struct DeltaTensors {
  Tensors of;
  std::vector<float> beta;    ///< [tokens, heads]
  std::vector<float> before;  ///< The state before the first token [heads, d_v, d_k].
  std::vector<float> after;   ///< The gradient of the state behind the last token.

  DeltaInputs<OnHost> inputs(const LayerShape& shape, std::int64_t first_token) const;
  const float* d_o(const LayerShape& shape, std::int64_t first_token) const;
};

/// All results of one layer, either precision.
template <class Number>
struct DeltaResults {
  Results<Number> of;
  std::vector<Number> dbeta;     ///< [tokens, heads]
  std::vector<Number> final;     ///< The state behind the last token [heads, d_v, d_k].
  std::vector<Number> d_before;  ///< The gradient of the state before the first token.
};

/// Draws the inputs.
DeltaTensors draw(const DeltaProblem& problem);

/// The oracle's results; without states, `before` and `after` are zero.
DeltaResults<double> delta_reference(const DeltaTensors& tensors, const LayerShape& shape,
                                     bool has_states = true);

/// The matrices [heads, d_k, d_k] of the oracle.
std::vector<double> delta_matrices(const DeltaTensors& tensors, const LayerShape& shape);

/// Room for the results of the whole layer, filled with NaN.
DeltaResults<float> delta_room(const LayerShape& shape);

/// Expects x within a relative error of 1e-5 of y and keeps the greatest error of `key` and
/// `tensor` for the summary of the run. Tensors of a norm below 1e-20 count as if they had that
/// norm: decays end at e^{-80}.
void expect_delta(const char* tensor, const std::vector<float>& x, const std::vector<double>& y,
                  const DeltaProblem& problem, const std::string& key);

/// Expects every result to be within that error.
void expect_delta(const DeltaResults<float>& results, const DeltaResults<double>& oracle,
                  const DeltaProblem& problem, const std::string& key);

/// The problems every kernel must solve: all gates from weak to strong, shapes with unequal sizes
/// and short last chunks.
std::vector<DeltaProblem> delta_problems();

/// Problems with equal gates, down to the strongest that the contracts allow. What passes no gate
/// is then larger than all of dg.
std::vector<DeltaProblem> equal_gate_problems();

}  // namespace baton::test
