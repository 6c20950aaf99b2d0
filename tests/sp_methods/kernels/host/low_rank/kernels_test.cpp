// SPDX-License-Identifier: Apache-2.0
// The kernels of a low-rank rule against the token oracle, on emulated ranks whose maps are chained
// by the combine of collectives.
//
//   every rank: low_rank_map;  P_{p+1} = A_p P_p + B_p by combine;  low_rank_output from P_p
//            or low_rank_output from zero, low_rank_correction;     delta_correct by P_p
//   every rank: low_rank_state_gradients;  E_p = A_p^T E_{p+1} + Dloc_p by combine, transposed;
//               low_rank_gradients from P_p and E_{p+1}
//
// Cost: the oracle's, once a problem.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "collectives/schedule/kernel.hpp"
#include "sp_methods/kernels/low_rank.hpp"
#include "tests/sp_methods/kernels/low_rank_problem.hpp"

namespace baton::test {
namespace {

using Numbers = std::vector<float>;

struct LowRankResults {
  DeltaResults<float> of;
  Numbers da, db;
};

/// The map of a rank applied to a state, by the combine of collectives.
Numbers combined(const Numbers& earlier, const Numbers& matrix, const Numbers& later, const LayerShape& s,
                 bool transposed) {
  Numbers into(earlier.size(), NAN);
  combine_on_host({{into}, {earlier, matrix, later}}, {{MapKind::affine, s.d_v, 0, transposed}, s.d_k});
  return into;
}

struct Rank {
  LayerShape shape;
  std::int64_t first;
  Numbers matrix, state, gradient, before;
};

Rank mapped(const LowRankTensors& x, const RankTokens& tokens) {
  const LayerShape& s = tokens.shape;
  const auto state = static_cast<std::size_t>(s.heads * s.d_v * s.d_k);
  Rank rank{s,
            tokens.first,
            Numbers(static_cast<std::size_t>(s.heads * s.d_k * s.d_k)),
            Numbers(state),
            Numbers(state),
            Numbers()};
  const auto in = x.inputs(s, tokens.first);
  LowRankMap::on_host({.in = in, .map_matrix = rank.matrix.data(), .map_state = rank.state.data()}, {s});
  LowRankStateGradients::on_host(
      {.in = in, .d_o = x.of.d_o(s, tokens.first), .map_state = rank.gradient.data()}, {s});
  return rank;
}

void set_output(float* o, const LowRankInputs<OnHost>& in, const Rank& rank, bool corrects) {
  const LayerShape& s = rank.shape;
  if (!corrects) return LowRankOutput::on_host({.in = in, .incoming = rank.before.data(), .o = o}, {s});
  Numbers correction(static_cast<std::size_t>(s.tokens * s.heads * s.d_k), NAN);
  LowRankOutput::on_host({.in = in, .o = o}, {s});
  LowRankCorrection::on_host({.in = in, .correction = correction.data()}, {s});
  DeltaCorrect::on_host({.correction = correction.data(), .incoming = rank.before.data(), .o = o}, {s});
}

LowRankResults run(const LowRankTensors& x, const LayerShape& whole, int count, bool corrects) {
  LowRankResults out{delta_room(whole), Numbers(x.a.size(), NAN), Numbers(x.a.size(), NAN)};
  std::vector<Rank> ranks;
  out.of.final = x.of.before;
  for (int p = 0; p < count; ++p) {
    Rank& rank = ranks.emplace_back(mapped(x, rank_tokens(whole, p, count)));
    rank.before = out.of.final;
    out.of.final = combined(rank.before, rank.matrix, rank.state, whole, false);
  }
  out.of.d_before = x.of.after;
  for (auto rank = ranks.rbegin(); rank != ranks.rend(); ++rank) {
    const LayerShape& s = rank->shape;
    const Numbers after = out.of.d_before;
    out.of.d_before = combined(after, rank->matrix, rank->gradient, whole, true);
    const auto in = x.inputs(s, rank->first);
    set_output(out.of.of.o.data() + rank->first * s.heads * s.d_v, in, *rank, corrects);
    const std::int64_t row = rank->first * s.heads * s.d_k;
    LowRankGradients::on_host(
        {.in = in,
         .d_o = x.of.d_o(s, rank->first),
         .before = rank->before.data(),
         .after = after.data(),
         .out = {gradients_at(out.of.of, s, rank->first), out.da.data() + row, out.db.data() + row}},
        {s});
  }
  return out;
}

/// Expects what emulated ranks make to be what the oracle makes. Many ranks correct their outputs.
void expect_low_rank(const DeltaProblem& problem, std::initializer_list<int> counts, const std::string& key) {
  const LowRankTensors tensors = draw_low_rank(problem);
  const LowRankOracle oracle(tensors, problem.shape);
  for (const int count : counts) {
    const LowRankResults got = run(tensors, problem.shape, count, count > 1);
    const auto check = [&](const char* tensor, const Numbers& x, const std::vector<double>& y) {
      expect_delta(tensor, x, y, problem, key);
    };
    check("o", got.of.of.o, oracle.o), check("final", got.of.final, oracle.final);
    check("dq", got.of.of.dq, oracle.dq), check("dk", got.of.of.dk, oracle.dk);
    check("dv", got.of.of.dv, oracle.dv), check("dg", got.of.of.dg, oracle.dg);
    check("da", got.da, oracle.da), check("db", got.db, oracle.db);
    check("d_before", got.of.d_before, oracle.d_before);
  }
  const Rank whole = mapped(tensors, {problem.shape, 0});
  expect_delta("matrix", whole.matrix, oracle.matrix, problem, "low-rank map");
}

TEST(low_rank_kernels, agree_with_the_recurrence_on_any_number_of_ranks) {
  for (const DeltaProblem& problem : delta_problems()) expect_low_rank(problem, {1, 3}, "low-rank kernels");
}

TEST(low_rank_kernels, agree_with_the_recurrence_where_all_gates_are_strong) {
  for (const DeltaProblem& problem : equal_gate_problems())
    expect_low_rank(problem, {1, 2}, "low-rank kernels, equal gates");
}

TEST(low_rank_kernels, a_part_of_the_map_may_be_left_out) {
  const DeltaProblem problem{{43, 2, 24, 20, 16, GateKind::vector}, 0.3F, 4};
  const LowRankTensors tensors = draw_low_rank(problem);
  const LayerShape& s = problem.shape;
  const Rank both = mapped(tensors, {s, 0});
  Numbers matrix(both.matrix.size(), NAN), state(both.state.size(), NAN);
  auto in = tensors.inputs(s, 0);
  in.of.q = nullptr;  // which no map reads
  LowRankMap::on_host({.in = in, .map_state = state.data()}, {s});
  in.of.k = in.of.v = nullptr;  // which no matrix reads
  LowRankMap::on_host({.in = in, .map_matrix = matrix.data()}, {s});
  expect_delta("matrix", matrix, {both.matrix.begin(), both.matrix.end()}, problem, "low-rank map, a part");
  expect_delta("state", state, {both.state.begin(), both.state.end()}, problem, "low-rank map, a part");
}

TEST(low_rank_kernels, costs_of_one_chunk_are_those_of_its_products) {
  const LayerShape s{64, 1, 128, 96, 64, GateKind::vector};
  const double c = 64, k = 128, v = 96;
  // Two scores, the solve, scores times values; R~ X^T and U^T B^ for both parts, V^T K^ for one.
  EXPECT_EQ(LowRankMap::flops({s}),
            4 * c * c * k + c * c * (k + v) + 2 * c * c * v + 4 * c * k * (k + v) + 2 * c * k * v);
  // Four scores, the solve, three products of scores, four with the state.
  EXPECT_EQ(LowRankOutput::flops({s}), 8 * c * c * k + c * c * v + 6 * c * c * v + 8 * c * k * v);
  // Scores and their gradients; two solves, four gradients of scores, four products of scores with
  // values; eleven products with states.
  EXPECT_EQ(LowRankGradients::flops({s}), 24 * c * c * k + 18 * c * c * v + 22 * c * k * v);
}

}  // namespace
}  // namespace baton::test
