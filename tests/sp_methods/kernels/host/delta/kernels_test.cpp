// SPDX-License-Identifier: Apache-2.0
// The kernels of a delta rule against the token oracle, on one rank and on emulated ranks whose
// maps are chained by the combine of collectives.
//
//   every rank: delta_map;  P_{p+1} = A_p P_p + B_p by combine;  delta_output from P_p
//            or delta_output from zero, delta_correction;        delta_correct by P_p
//   every rank: delta_state_gradients;  E_p = A_p^T E_{p+1} + Dloc_p by combine, transposed;
//               delta_gradients from P_p and E_{p+1}
//
// Cost: the oracle's, once a problem.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "collectives/schedule/kernel.hpp"
#include "sp_methods/kernels/delta.hpp"
#include "tests/sp_methods/kernels/delta_problem.hpp"

namespace baton::test {
namespace {

/// Head groups: each kernel is called once a group.
using Groups = std::vector<Work>;
using Numbers = std::vector<float>;

/// How the output is made once the state is known.
enum class Form { rerun, correction };

std::size_t state_size(const LayerShape& s) { return static_cast<std::size_t>(s.heads * s.d_v * s.d_k); }

/// One rank's maps in both directions, and the states that come to it.
struct Rank {
  Rank(const RankTokens& tokens)
      : shape(tokens.shape),
        first(tokens.first),
        matrix(static_cast<std::size_t>(shape.heads * shape.d_k * shape.d_k), NAN),
        state(state_size(shape), NAN),
        gradient(state_size(shape), NAN) {}

  LayerShape shape;
  std::int64_t first;
  Numbers matrix, state, gradient;
  Numbers before, after;
};

/// The map of a rank applied to a state, by the combine of collectives.
Numbers combined(const Numbers& earlier, const Numbers& matrix, const Numbers& later, const LayerShape& s,
                 bool transposed) {
  Numbers into(earlier.size(), NAN);
  const Combine by{{MapKind::affine, s.d_v, 0, transposed}, s.d_k};
  combine_on_host({{into}, {earlier, matrix, later}}, by);
  return into;
}

void make_maps(Rank& rank, const DeltaTensors& tensors, const Groups& groups) {
  const LayerShape& s = rank.shape;
  for (const Work& work : groups) {
    const auto in = tensors.inputs(s, rank.first);
    const std::int64_t head = work.first_head;
    DeltaMap::on_host({.in = in,
                       .map_matrix = rank.matrix.data() + head * s.d_k * s.d_k,
                       .map_state = rank.state.data() + head * s.d_v * s.d_k},
                      {s, work});
    DeltaStateGradients::on_host({.in = in,
                                  .d_o = tensors.d_o(s, rank.first),
                                  .map_state = rank.gradient.data() + head * s.d_v * s.d_k},
                                 {s, work});
  }
}

void set_results(DeltaResults<float>& out, const Rank& rank, const DeltaTensors& tensors, Form form,
                 const Groups& groups) {
  const LayerShape& s = rank.shape;
  const auto in = tensors.inputs(s, rank.first);
  float* o = out.of.o.data() + rank.first * s.heads * s.d_v;
  Numbers correction(static_cast<std::size_t>(s.tokens * s.heads * s.d_k), NAN);
  for (const Work& work : groups) {
    const float* before = rank.before.data() + work.first_head * s.d_v * s.d_k;
    const float* after = rank.after.data() + work.first_head * s.d_v * s.d_k;
    if (form == Form::rerun) {
      DeltaOutput::on_host({.in = in, .incoming = before, .o = o}, {s, work});
    } else {
      DeltaOutput::on_host({.in = in, .o = o}, {s, work});
      DeltaCorrection::on_host({.in = in, .correction = correction.data()}, {s, work});
      DeltaCorrect::on_host({.correction = correction.data(), .incoming = before, .o = o}, {s, work});
    }
    DeltaGradients::on_host(
        {.in = in,
         .d_o = tensors.d_o(s, rank.first),
         .before = before,
         .after = after,
         .out = {gradients_at(out.of, s, rank.first), out.dbeta.data() + rank.first * s.heads}},
        {s, work});
  }
}

DeltaResults<float> run(const DeltaTensors& tensors, const LayerShape& whole, int count,
                        Form form = Form::rerun, const Groups& groups = {Work{}}) {
  std::vector<Rank> ranks;
  for (int p = 0; p < count; ++p)
    make_maps(ranks.emplace_back(rank_tokens(whole, p, count)), tensors, groups);
  DeltaResults<float> out = delta_room(whole);
  out.final = tensors.before;
  for (Rank& rank : ranks) {
    rank.before = out.final;
    out.final = combined(rank.before, rank.matrix, rank.state, whole, false);
  }
  out.d_before = tensors.after;
  for (auto rank = ranks.rbegin(); rank != ranks.rend(); ++rank) {
    rank->after = out.d_before;
    out.d_before = combined(rank->after, rank->matrix, rank->gradient, whole, true);
  }
  for (const Rank& rank : ranks) set_results(out, rank, tensors, form, groups);
  return out;
}

TEST(delta_kernels, agree_with_the_recurrence_on_any_number_of_ranks) {
  for (const DeltaProblem& problem : delta_problems()) {
    const DeltaTensors tensors = draw(problem);
    const auto oracle = delta_reference(tensors, problem.shape);
    for (const int count : {1, 3, 4})
      expect_delta(run(tensors, problem.shape, count), oracle, problem, "delta kernels, rerun");
  }
}

TEST(delta_kernels, agree_with_the_recurrence_where_all_gates_are_strong) {
  for (const DeltaProblem& problem : equal_gate_problems()) {
    const DeltaTensors tensors = draw(problem);
    const auto oracle = delta_reference(tensors, problem.shape);
    for (const int count : {1, 2})
      expect_delta(run(tensors, problem.shape, count), oracle, problem, "delta kernels, equal gates");
  }
}

TEST(delta_kernels, the_correction_gives_what_a_second_run_gives) {
  for (const DeltaProblem& problem : delta_problems()) {
    const DeltaTensors tensors = draw(problem);
    const auto oracle = delta_reference(tensors, problem.shape).of.o;
    const auto again = run(tensors, problem.shape, 4).of.o;
    const auto corrected = run(tensors, problem.shape, 4, Form::correction).of.o;
    expect_delta("o", corrected, oracle, problem, "delta kernels, correction");
    expect_delta("o", corrected, {again.begin(), again.end()}, problem, "delta kernels, correction - rerun");
  }
}

TEST(delta_kernels, the_map_is_that_of_the_tokens) {
  for (const DeltaProblem& problem : delta_problems()) {
    const DeltaTensors tensors = draw(problem);
    const LayerShape& s = problem.shape;
    Rank rank({s, 0});
    make_maps(rank, tensors, {Work{}});
    const auto from_zero = delta_reference(tensors, s, false);
    expect_delta("matrix", rank.matrix, delta_matrices(tensors, s), problem, "delta map");
    expect_delta("state", rank.state, from_zero.final, problem, "delta map");
    expect_delta("gradient", rank.gradient, from_zero.d_before, problem, "delta map");
  }
}

TEST(delta_kernels, with_weak_gates_the_matrix_matters) {
  // Else a wrong matrix would pass every tolerance.
  for (const GateKind kind : {GateKind::vector, GateKind::scalar, GateKind::none}) {
    const DeltaProblem problem{{48, 2, 24, 20, 16, kind}, 0.02F, 21};
    const auto matrix = delta_matrices(draw(problem), problem.shape);
    double sum = 0;
    for (const double x : matrix) sum += x * x;
    EXPECT_GT(std::sqrt(sum), 0.3) << problem.name();
  }
}

TEST(delta_kernels, a_part_of_the_map_may_be_left_out) {
  const DeltaProblem problem{{43, 2, 24, 20, 16, GateKind::vector}, 0.3F, 4};
  const DeltaTensors tensors = draw(problem);
  const LayerShape& s = problem.shape;
  Numbers matrix(static_cast<std::size_t>(s.heads * s.d_k * s.d_k), NAN), state(state_size(s), NAN);
  auto in = tensors.inputs(s, 0);
  in.of.q = nullptr;  // which no map reads
  DeltaMap::on_host({.in = in, .map_state = state.data()}, {s});
  in.of.v = nullptr;
  DeltaMap::on_host({.in = in, .map_matrix = matrix.data()}, {s});
  expect_delta("matrix", matrix, delta_matrices(tensors, s), problem, "delta map, a part");
  expect_delta("state", state, delta_reference(tensors, s, false).final, problem, "delta map, a part");
}

TEST(delta_kernels, null_states_are_zeros) {
  const DeltaProblem problem{{43, 2, 24, 20, 16, GateKind::scalar}, 0.3F, 5};
  const DeltaTensors tensors = draw(problem);
  const LayerShape& s = problem.shape;
  DeltaResults<float> out = delta_room(s);
  const auto in = tensors.inputs(s, 0);
  DeltaOutput::on_host({.in = in, .o = out.of.o.data()}, {s});
  DeltaGradients::on_host(
      {.in = in, .d_o = tensors.d_o(s, 0), .out = {gradients_at(out.of, s, 0), out.dbeta.data()}}, {s});
  const auto oracle = delta_reference(tensors, s, false);
  out.final.assign(oracle.final.begin(), oracle.final.end());
  out.d_before.assign(oracle.d_before.begin(), oracle.d_before.end());
  expect_delta(out, oracle, problem, "delta kernels, from zero");
  const auto without = out.of.o;
  DeltaCorrect::on_host({.o = out.of.o.data()}, {s});
  EXPECT_EQ(out.of.o, without);
}

TEST(delta_kernels, a_token_that_writes_nothing_has_a_gradient_of_its_strength) {
  const DeltaProblem problem{{21, 1, 24, 20, 16, GateKind::vector}, 0.3F, 6};
  DeltaTensors tensors = draw(problem);
  for (std::size_t t = 0; t < tensors.beta.size(); t += 3) tensors.beta[t] = 0;
  expect_delta(run(tensors, problem.shape, 1), delta_reference(tensors, problem.shape), problem,
               "delta kernels, strengths of zero");
}

TEST(delta_kernels, give_the_same_bits_by_head_groups_and_on_threads) {
  const DeltaProblem problem{{150, 5, 16, 24, 32, GateKind::vector}, 0.3F, 3};
  const DeltaTensors tensors = draw(problem);
  const auto at_once = run(tensors, problem.shape, 2, Form::correction);
  for (const Groups& groups : {Groups{{0, -1, 3}}, Groups{{0, 2, 1}, {2, 3, 2}}}) {
    const auto other = run(tensors, problem.shape, 2, Form::correction, groups);
    EXPECT_EQ(at_once.of.o, other.of.o);
    EXPECT_EQ(at_once.of.dq, other.of.dq);
    EXPECT_EQ(at_once.of.dk, other.of.dk);
    EXPECT_EQ(at_once.of.dv, other.of.dv);
    EXPECT_EQ(at_once.of.dg, other.of.dg);
    EXPECT_EQ(at_once.dbeta, other.dbeta);
    EXPECT_EQ(at_once.final, other.final);
    EXPECT_EQ(at_once.d_before, other.d_before);
  }
}

TEST(delta_kernels, costs_of_one_chunk_are_those_of_its_products) {
  const LayerShape s{64, 1, 128, 96, 64, GateKind::vector};
  const double c = 64, k = 128, v = 96;
  // Scores of keys, the triangular solve, K~ X^T and Vn^T K^ for both parts of the map.
  EXPECT_EQ(DeltaMap::flops({s}), 2 * c * c * k + c * c * (k + v) + 4 * c * k * (k + v));
  // Both scores, solve, Aqk Vn, and three products with the state.
  EXPECT_EQ(DeltaOutput::flops({s}), 4 * c * c * k + c * c * v + 2 * c * c * v + 6 * c * k * v);
  EXPECT_EQ(DeltaCorrection::flops({s}), 4 * c * c * k + 3 * c * c * k + 6 * c * k * k);
  EXPECT_EQ(DeltaCorrect::flops({s}), 2 * c * k * v);
  EXPECT_EQ(DeltaStateGradients::flops({s}), 4 * c * c * k + 3 * c * c * v + 6 * c * k * v);
  // Scores and their gradients; two solves, dAqk, dG and Aqk^T dO; eight products with states.
  EXPECT_EQ(DeltaGradients::flops({s}), 12 * c * c * k + 8 * c * c * v + 16 * c * k * v);
  LayerShape short_last = s;
  short_last.tokens = 96;
  EXPECT_EQ(DeltaCorrection::flops({short_last}), (64 * 64 + 32 * 32) * 7 * k + 6 * 96 * k * k);
}

}  // namespace
}  // namespace baton::test
