// SPDX-License-Identifier: Apache-2.0
#include "tests/sp_methods/kernels/low_rank_problem.hpp"

#include <cmath>
#include <random>

#include "sp_methods/kernels/reference/low_rank.hpp"

namespace baton::test {

LowRankTensors draw_low_rank(const DeltaProblem& problem) {
  LowRankTensors out{draw(problem), {}, {}};
  DeltaProblem other = problem;
  other.seed += 50;
  out.a = draw(other).of.k;
  out.b = out.a;
  std::mt19937 random(problem.seed);
  std::normal_distribution<float> normal;
  for (float& b : out.b) b *= -1.0F / (1.0F + std::exp(-normal(random)));
  return out;
}

LowRankOracle::LowRankOracle(const LowRankTensors& x, const LayerShape& s) {
  for (std::int64_t h = 0; h < s.heads; ++h) add(x, s, h);
}

void LowRankOracle::add(const LowRankTensors& x, const LayerShape& s, std::int64_t h) {
  const auto head = [&](const std::vector<float>& rows, std::int64_t width) {
    return head_of(rows, h, s.heads, width);
  };
  const auto q = head(x.of.of.q, s.d_k), k = head(x.of.of.k, s.d_k), v = head(x.of.of.v, s.d_v),
             g = head(x.of.of.g, s.gate_width()), a = head(x.a, s.d_k), b = head(x.b, s.d_k),
             before = head(x.of.before, s.d_v * s.d_k), after = head(x.of.after, s.d_v * s.d_k),
             d_o = head(x.of.of.d_o, s.d_v);
  const LowRankReferenceInputs in{{q, k, v, g, before}, a, b};
  const auto out = low_rank_reference_forward(in, s);
  const auto back = low_rank_reference_backward(in, d_o, after, s);
  const auto put = [&](std::vector<double>& all, const std::vector<double>& rows, std::int64_t width) {
    put_head(all, rows, h, s.heads, width);
  };
  put(o, out.o, s.d_v), put(final, out.final_state, s.d_v * s.d_k);
  put(dq, back.of.dq, s.d_k), put(dk, back.of.dk, s.d_k), put(dv, back.of.dv, s.d_v);
  put(dg, back.of.dg, s.gate_width()), put(da, back.da, s.d_k), put(db, back.db, s.d_k);
  put(d_before, back.of.initial_state, s.d_v * s.d_k);
  put(matrix, low_rank_reference_matrix(in, s), s.d_k * s.d_k);
}

}  // namespace baton::test
