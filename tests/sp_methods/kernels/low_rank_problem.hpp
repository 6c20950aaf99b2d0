// SPDX-License-Identifier: Apache-2.0
// Random layers with a low-rank rule for the tests: those of a delta rule (delta_problem.hpp) with
// a and b in the place of beta, and the oracle's answer.
//
// Cost: the oracle's.
#pragma once

#include <vector>

#include "sp_methods/kernels/low_rank.hpp"
#include "tests/sp_methods/kernels/delta_problem.hpp"

namespace baton::test {

/// All inputs of one layer.
struct LowRankTensors {
  DeltaTensors of;
  std::vector<float> a, b;  ///< [tokens, heads, d_k]

  LowRankInputs<OnHost> inputs(const LayerShape& s, std::int64_t first) const {
    const std::int64_t row = first * s.heads * s.d_k;
    return {of.of.inputs(s, first), a.data() + row, b.data() + row};
  }
};

/// Draws the inputs: a is of length one, and b is -a (.) sigmoid(normal).
LowRankTensors draw_low_rank(const DeltaProblem& problem);

/// What the oracle makes of a layer.
struct LowRankOracle {
  std::vector<double> o, final, dq, dk, dv, dg, da, db, d_before, matrix;

  LowRankOracle(const LowRankTensors& x, const LayerShape& s);

 private:
  void add(const LowRankTensors& x, const LayerShape& s, std::int64_t head);
};

}  // namespace baton::test
