// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/layer_oracle.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sp_methods/head_oracle.hpp"
#include "sp_methods/kernels/reference/attention.hpp"

namespace {

using namespace baton;

const LayerShape share{6, 2, 3, 4, 4, GateKind::vector};

TEST(LayerOracle, RanksShareOneSequenceUnlessAlone) {
  const LayerOracle together({Attention::linear, share, 2, false, GateDraw::layer, 5});
  const LayerOracle alone({Attention::linear, share, 2, true, GateDraw::layer, 5});
  const auto first = Positions::run(0, 6), second = Positions::run(6, 6);
  EXPECT_EQ(together.input("q", second), alone.input("q", second));
  EXPECT_EQ(together.expected("o", first),
            alone.expected("o", first));  // nothing comes before the first rank
  EXPECT_NE(together.expected("o", second), alone.expected("o", second));
  EXPECT_NE(together.expected("dk", first),
            alone.expected("dk", first));  // but later tokens look back at its keys
}

TEST(LayerOracle, ThePrefixIsWhatTheTokensBeforeLeave) {
  const LayerOracle oracle(
      {Attention::linear, {1, 1, 2, 2, 1, GateKind::none}, 2, false, GateDraw::layer, 5});
  const auto k = oracle.input("k", Positions::run(0, 1)), v = oracle.input("v", Positions::run(0, 1));
  const auto prefix = oracle.input("prefix", Positions::run(1, 1));
  for (int i : {0, 1})
    for (int j : {0, 1}) EXPECT_FLOAT_EQ(prefix[2 * i + j], k[i] * v[j]);
  EXPECT_EQ(oracle.input("prefix", Positions::run(0, 1)), std::vector<float>(4, 0.0f));
}

/// prefix of rank 2 = matrix of rank 1 applied to the prefix of rank 1, plus what its tokens add.
TEST(LayerOracle, OfADeltaRuleHasPrefixesThatMatricesConnect) {
  constexpr std::int64_t d_k = 3, d_v = 4, heads = 2;
  const LayerOracle oracle({.share = {6, heads, d_k, d_v, 4, GateKind::vector},
                            .ranks = 3,
                            .gates = GateDraw::mixed,
                            .rule = Rule::delta});
  const Positions one = Positions::run(6, 6);
  const auto matrix = oracle.input("map_matrix", one), before = oracle.input("prefix", one),
             behind = oracle.input("prefix", Positions::run(2 * 6, 6));
  ASSERT_EQ(matrix.size(), heads * d_k * d_k);
  LayerInputValues inputs(oracle.problem());
  for (std::int64_t head = 0; head < heads; ++head) {
    const auto added = state_behind(HeadInputs(inputs, head, 6, 6));
    for (std::int64_t i = 0; i < d_v * d_k; ++i) {
      const float* row = matrix.data() + (head * d_k + i % d_k) * d_k;
      const float* x = before.data() + head * d_v * d_k + i / d_k * d_k;
      EXPECT_NEAR(behind[head * d_v * d_k + i], std::inner_product(row, row + d_k, x, added[i]), 1e-6);
    }
  }
}

TEST(LayerOracle, ZigzagRowsAreThoseOfTheirPositions) {
  const LayerShape softmax{4, 1, 2, 2, 4, GateKind::none};
  const LayerOracle oracle({Attention::softmax, softmax, 2, false, GateDraw::layer, 1});
  const auto front = oracle.input("q", Positions::run(0, 4)), back = oracle.input("q", Positions::run(4, 4));
  const auto zigzag = oracle.input("q", Cut{Layout::zigzag, 2, 4}.positions(0));
  EXPECT_EQ(std::vector(zigzag.begin(), zigzag.begin() + 4), std::vector(front.begin(), front.begin() + 4));
  EXPECT_EQ(std::vector(zigzag.begin() + 4, zigzag.end()), std::vector(back.begin() + 4, back.end()));
}

TEST(LayerOracle, UnitsOfWorkAndProcessesAddUpToTheWhole) {
  for (const auto& [attention, rule] : {std::pair{Attention::linear, Rule::decay},
                                        {Attention::linear, Rule::delta},
                                        {Attention::linear, Rule::low_rank},
                                        {Attention::softmax, Rule::decay}}) {
    LayerShape shape{140, 3, 4, 5, 4, attention == Attention::linear ? GateKind::vector : GateKind::none};
    const LayerProblem problem{attention, shape, 2, false, GateDraw::mixed, 5, Dtype::f32, rule};
    const LayerOracle whole(problem);
    // Three processes with two threads each, one after the other; the sums of the first two are
    // kept.
    std::vector<std::vector<double>> sums;
    std::size_t next = 0;
    OracleWork work{.heads = {1}, .parts = 3, .threads = 2};
    work.sum = [&](std::span<double> values) {
      if (next == sums.size()) sums.emplace_back(values.size(), 0.0);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = sums[next][i] += values[i];
      ++next;
    };
    for (work.part = 0; work.part < 2; ++work.part, next = 0) LayerOracle(problem, work);
    const LayerOracle shared(problem, work);
    EXPECT_EQ(shared.heads(), std::vector<std::int64_t>{1});
    for (const char* name : {"o", "dq", "dk", "dv", "dg", "dbeta", "da", "db"}) {
      if (name == std::string("dbeta") && rule != Rule::delta) continue;
      if ((name == std::string("da") || name == std::string("db")) && rule != Rule::low_rank) continue;
      const auto positions = Positions::run(140, 140);
      const auto all = whole.expected(name, positions), one = shared.expected(name, positions);
      const std::int64_t width = problem.width(name);
      ASSERT_EQ(all.size(), 3 * one.size());
      for (std::size_t i = 0; i < one.size(); ++i)
        ASSERT_NEAR(one[i], all[(i / width * 3 + 1) * width + i % width], 1e-12) << name;
    }
  }
}

/// The first token's output is s (q . k) v. Its terms are those of q, of k and of the state k v^T,
/// of one norm each, and those of v, which cancel as the output does.
TEST(LayerOracle, KnowsTheTermsOfAnOutput) {
  const LayerProblem problem{.share = {1, 2, 16, 3, 1, GateKind::none}, .ranks = 2, .seed = 3};
  const LayerOracle oracle(problem);
  const auto first = Positions::run(0, 1);
  const auto q = oracle.input("q", first), k = oracle.input("k", first), v = oracle.input("v", first);
  double squares = 0;
  for (int head : {0, 1}) {
    double score = 0, of_scores = 0, of_values = 0;
    for (int c = 16 * head; c < 16 * (head + 1); ++c) {
      score += q[c] * k[c];
      of_scores += 3.0 * q[c] * q[c] * k[c] * k[c];
    }
    for (int c = 3 * head; c < 3 * (head + 1); ++c) of_values += v[c] * v[c];
    squares += (of_scores + score * score) * of_values / 16;
  }
  EXPECT_NEAR(oracle.rms_of_terms("o", first, 1) / std::sqrt(squares / 6), 1, 0.4) << "eight roundings";
}

/// Methods make dg of a token from what later tokens add and take away again.
TEST(LayerOracle, TermsOfAGateAreThoseOfLaterGatesToo) {
  const LayerProblem problem{
      .share = {8, 1, 4, 4, 1, GateKind::scalar}, .gates = GateDraw::strong, .seed = 7};
  const LayerOracle oracle(problem);
  Positions at = Positions::run(0, 8);
  double later = 0;
  for (at.first = 7; at.first > 0; --at.first) {
    const double terms = oracle.rms_of_terms("dg", at, 1);
    EXPECT_GT(terms, later / 10) << at.first;
    later = std::max(later, terms);
  }
}

TEST(LayerOracle, LooksForNoTermsInALargeLayer) {
  const LayerOracle oracle({.share = {2048, 1, 64, 64, 64, GateKind::vector}, .ranks = 1});
  EXPECT_EQ(oracle.rms_of_terms("dg", Positions::run(0, 2048), 2048), 0);
  EXPECT_EQ(oracle.norm_of_terms("dg", 0), 0);
}

/// The second of two heads of keys, which query heads 2 and 3 share, is a layer of its own.
TEST(LayerOracle, HeadsThatShareKeysAddUpTheirGradients) {
  const LayerShape shared{10, 4, 3, 5, 4, GateKind::none, 2};
  const LayerProblem problem{Attention::softmax, shared, 2, false, GateDraw::layer, 5};
  const LayerOracle whole(problem), half(problem, {.heads = {2, 3}}), third(problem, {.heads = {3}});
  const auto positions = Positions::run(10, 10);
  EXPECT_EQ(whole.input("k", positions).size(), 10 * 2 * 3);
  EXPECT_EQ(half.heads("dk"), std::vector<std::int64_t>{1});
  EXPECT_EQ(half.heads("o"), (std::vector<std::int64_t>{2, 3}));
  const LayerOracle second(problem, {.heads = {2}});
  for (const char* name : {"dk", "dv"}) {
    const std::int64_t width = problem.width(name);
    const auto all = whole.expected(name, positions), one = half.expected(name, positions);
    const auto of_2 = second.expected(name, positions), of_3 = third.expected(name, positions);
    ASSERT_EQ(all.size(), 2 * one.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      ASSERT_EQ(one[i], all[(i / width * 2 + 1) * width + i % width]) << name;
      ASSERT_NEAR(one[i], of_2[i] + of_3[i], 1e-12) << name;
    }
  }
}

/// The sum over heads of d_o . o, as a function of latent keys [tokens, d_k], by the reference.
double loss(const LayerOracle& oracle, const std::vector<float>& keys) {
  const LayerShape& s = oracle.problem().share;
  const auto positions = Positions::run(0, s.tokens);
  const auto q = oracle.input("q", positions), d_o = oracle.input("d_o", positions);
  std::vector<double> k(keys.begin(), keys.end()), v, q_head;
  for (std::size_t i = 0; i < k.size(); ++i)
    if (static_cast<std::int64_t>(i) % s.d_k < s.d_v) v.push_back(k[i]);
  double sum = 0;
  for (std::int64_t head = 0; head < s.heads; ++head) {
    q_head.clear();
    for (std::int64_t t = 0; t < s.tokens; ++t)
      q_head.insert(q_head.end(), q.begin() + (t * s.heads + head) * s.d_k,
                    q.begin() + (t * s.heads + head + 1) * s.d_k);
    const auto o = softmax_reference_forward({q_head, k, v, {}, {}}, s).o;
    for (std::int64_t i = 0; i < s.tokens * s.d_v; ++i)
      sum += o[i] * d_o[(i / s.d_v * s.heads + head) * s.d_v + i % s.d_v];
  }
  return sum;
}

TEST(LayerOracle, GradientsOfLatentKeysAreThoseOfTheirValuesToo) {
  const LayerShape latent{6, 3, 5, 3, 4, GateKind::none, 1, true};
  const LayerOracle oracle({Attention::softmax, latent, 1, false, GateDraw::layer, 5});
  const auto positions = Positions::run(0, latent.tokens);
  const auto dk = oracle.expected("dk", positions);
  std::vector<float> k = oracle.input("k", positions);
  EXPECT_EQ(oracle.problem().width("v"), 0);
  ASSERT_EQ(dk.size(), k.size());
  for (std::size_t i = 0; i < k.size(); ++i) {
    const float own = k[i], step = 1.0F / 128;
    k[i] = own + step;
    const double more = loss(oracle, k), above = k[i];
    k[i] = own - step;
    EXPECT_NEAR((more - loss(oracle, k)) / (above - k[i]), dk[i], 1e-3) << i;
    k[i] = own;
  }
}

TEST(LayerOracle, WhatIsSavedIsOnlyKnownOfSolvedHeads) {
  const LayerShape softmax{4, 2, 2, 2, 4, GateKind::none};
  const LayerProblem problem{Attention::softmax, softmax, 2, false, GateDraw::layer, 1};
  const LayerOracle whole(problem), one(problem, {.heads = {1}});
  const auto positions = Positions::run(4, 4);
  const auto lse = one.input("lse", positions);
  EXPECT_EQ(lse[0], 10);
  EXPECT_EQ(lse[1], whole.input("lse", positions)[1]);
  EXPECT_EQ(one.input("out", positions)[3], whole.input("out", positions)[3]);
}

TEST(RelativeError, IsOfTheNormAndNeverPassesWhatIsNotFinite) {
  EXPECT_DOUBLE_EQ(relative_error({3, 4}, {3, 4}), 0);
  EXPECT_DOUBLE_EQ(relative_error({3, 5}, {3, 4}), 0.2);
  EXPECT_DOUBLE_EQ(relative_error({0, 2}, {0, 0}), 2);
  EXPECT_TRUE(std::isinf(relative_error({NAN}, {1})));
  EXPECT_FLOAT_EQ(relative_error({0.02F, 0}, {0, 0.02F}, 1), 0.02F) << "small values count as large ones";
}

TEST(LeastRms, FollowsTheKeysThatQueriesSee) {
  LayerProblem problem{
      .attention = Attention::softmax, .share = {16, 1, 4, 4, 4, GateKind::none}, .ranks = 1};
  const Positions all = Positions::run(0, 16);
  EXPECT_DOUBLE_EQ(least_rms(problem, all, 16), 0.025) << "a tenth of 16^(-1/2)";
  problem.mask.window = 1;
  EXPECT_DOUBLE_EQ(least_rms(problem, all, 16), 0.1);
  problem.mask.window = 4;
  EXPECT_DOUBLE_EQ(least_rms(problem, Positions::run(8, 8), 8), 0.05) << "queries that all see four keys";
  problem.mask = {MaskKind::full, 16};
  problem.starts = {0, 1, 2, 3, 4};  // four of one token, and one of twelve
  EXPECT_DOUBLE_EQ(least_rms(problem, Positions::run(0, 4), 4), 0.1);
  EXPECT_DOUBLE_EQ(least_rms(problem, all, 16), 0.1 * std::sqrt((4 + 12 / 12.0) / 16));
  problem.attention = Attention::linear;
  EXPECT_EQ(least_rms(problem, all, 16), 0);
}

}  // namespace
