// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/layer_inputs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "sp_methods/head_oracle.hpp"

namespace {

using namespace baton;

const LayerShape share{8, 3, 16, 16, 8, GateKind::vector};

LayerProblem problem(GateDraw gates = GateDraw::mixed, Dtype dtype = Dtype::f32) {
  return {
      .attention = Attention::linear, .share = share, .ranks = 4, .gates = gates, .seed = 3, .dtype = dtype};
}

/// All rows of one rank.
std::vector<float> of_rank(const LayerInputValues& inputs, const char* name, const Positions& positions) {
  const LayerProblem& problem = inputs.problem();
  std::vector<float> rows(problem.share.tokens * problem.share.heads * problem.width(name));
  inputs.fill(name, positions, 0, rows);
  return rows;
}

TEST(LayerInputs, OfAHeadAreRowsOfThoseOfARank) {
  const LayerInputValues inputs(problem());
  const auto rows = of_rank(inputs, "v", Positions::run(2 * 8, 8));
  const auto head = inputs.of_head("v", 1, 16, 8);
  for (int t = 0; t < 8; ++t)
    for (int c = 0; c < 16; ++c) EXPECT_EQ(rows[(t * 3 + 1) * 16 + c], head[t * 16 + c]);
  // Rank 1 of 4 has positions 4 to 7 and 24 to 27, and the latter are the first ones of rank 3.
  const auto zigzag = of_rank(inputs, "v", Cut{Layout::zigzag, 4, 8}.positions(1));
  const auto last = of_rank(inputs, "v", Positions::run(3 * 8, 8));
  EXPECT_EQ(std::vector(zigzag.end() - 4 * 48, zigzag.end()),
            std::vector(last.begin(), last.begin() + 4 * 48))
      << "a position has its values on whatever rank it lies";
}

TEST(LayerInputs, OfStripedTokensAreThoseOfTheirPositions) {
  const LayerInputValues inputs(problem());
  const auto rows = of_rank(inputs, "v", Cut{Layout::striped, 4, 8}.positions(1));
  const auto head = inputs.of_head("v", 2, 0, 32);
  for (int t = 0; t < 8; ++t)
    for (int c = 0; c < 16; ++c) EXPECT_EQ(rows[(t * 3 + 2) * 16 + c], head[(1 + 4 * t) * 16 + c]);
}

TEST(LayerInputs, ARunOfTokensHasTheRowsThatItHasAmongAll) {
  const LayerInputValues inputs(problem());
  const auto all = of_rank(inputs, "g", Positions::run(8, 8));
  std::vector<float> run(2 * 48);
  inputs.fill("g", Positions::run(8, 8), 3, run);
  EXPECT_EQ(run, std::vector(all.begin() + 3 * 48, all.begin() + 5 * 48));
}

TEST(LayerInputs, OfAllTensorsRanksAndSeedsDiffer) {
  std::set<std::vector<float>> different;
  int count = 0;
  for (std::uint64_t seed : {3, 4})
    for (const char* name : {"q", "k", "v", "d_o"})
      for (int rank : {0, 1, 2, 3}) {
        LayerProblem reseeded = problem();
        reseeded.seed = seed;
        different.insert(of_rank(LayerInputValues(reseeded), name, Positions::run(rank * 8, 8)));
        ++count;
      }
  EXPECT_EQ(different.size(), count);
}

TEST(LayerInputs, AreNormalAndExactInTheirDtype) {
  const auto values = LayerInputValues(problem()).of_head("q", 0, 0, 4096);
  const double count = static_cast<double>(values.size());
  EXPECT_NEAR(std::accumulate(values.begin(), values.end(), 0.0) / count, 0, 0.02);
  EXPECT_NEAR(std::inner_product(values.begin(), values.end(), values.begin(), 0.0) / count, 1, 0.03);
  for (const char* name : {"q", "g"})
    for (double value : LayerInputValues(problem(GateDraw::mixed, Dtype::bf16)).of_head(name, 0, 0, 16))
      EXPECT_EQ(value, from_bf16(to_bf16(static_cast<float>(value))));
}

/// The sums over all tokens of the log gates of each channel of a head.
std::vector<double> totals(const LayerProblem& problem, std::int64_t head) {
  const std::int64_t width = problem.width("g");
  const auto gates = LayerInputValues(problem).of_head("g", head, 0, problem.share.tokens * problem.ranks);
  std::vector<double> sums(width, 0.0);
  for (std::size_t i = 0; i < gates.size(); ++i) {
    EXPECT_LE(gates[i], 0);
    sums[i % width] += gates[i];
  }
  return sums;
}

TEST(LayerInputs, MixedGatesKeepForgetAndDoAsALayerDoes) {
  LayerProblem long_one = problem();
  long_one.share.tokens = 256;
  int keep = 0, forget = 0;
  for (const double total : totals(long_one, 0)) {
    keep += total > -1.6 && total < -0.4;
    forget += total / 1024 <= -0.25 && total / 1024 >= -0.5;
  }
  EXPECT_EQ(keep, 4);
  EXPECT_EQ(forget, 4);
}

TEST(LayerInputs, MixedScalarGatesDifferByHead) {
  LayerProblem scalar = problem();
  scalar.share = {256, 4, 16, 16, 8, GateKind::scalar};
  std::vector<double> all;
  for (int head = 0; head < 4; ++head) all.push_back(totals(scalar, head).at(0));
  std::sort(all.begin(), all.end());
  EXPECT_LT(all[0], -256);
  EXPECT_GT(all[3], -1.6);
}

TEST(LayerInputs, MixedGatesStayWithinTheGuardOfLongChunks) {
  for (std::int64_t chunk : {16, 64, 128, 512}) {
    LayerProblem chunked = problem();
    chunked.share.chunk = chunk;
    chunked.share.tokens = chunk;
    for (const double total : totals(chunked, 0)) EXPECT_GE(total / chunked.ranks, -64) << chunk;
  }
}

TEST(LayerInputs, WeakGatesKeepEveryChannel) {
  for (const double total : totals(problem(GateDraw::weak), 0)) {
    EXPECT_LT(total / 32, -0.5e-4);
    EXPECT_GT(total / 32, -1.5e-4);
  }
}

TEST(LayerInputs, StrongGatesAreStrong) {
  for (const double total : totals(problem(GateDraw::strong), 0)) EXPECT_LT(total / 32, -2);
}

TEST(LayerInputs, OfADeltaRuleHaveQueriesAndKeysOfLengthOne) {
  LayerProblem delta = problem();
  delta.rule = Rule::delta;
  const LayerInputValues inputs(delta);
  for (const char* name : {"q", "k"}) {
    const auto rows = inputs.of_head(name, 1, 0, 32);
    for (int t = 0; t < 32; ++t)
      EXPECT_NEAR(
          std::inner_product(rows.begin() + 16 * t, rows.begin() + 16 * (t + 1), rows.begin() + 16 * t, 0.0),
          1, 1e-6);
  }
  for (const double beta : inputs.of_head("beta", 1, 0, 32)) EXPECT_TRUE(0 < beta && beta < 1) << beta;
  EXPECT_EQ(of_rank(inputs, "beta", Positions::run(8, 8)).size(), 8 * 3);
}

/// b / a is the rate at which a channel is erased.
TEST(LayerInputs, OfALowRankRuleEraseAlongWhatTheyRead) {
  LayerProblem low_rank = problem();
  low_rank.rule = Rule::low_rank;
  const LayerInputValues inputs(low_rank);
  const auto a = inputs.of_head("a", 1, 0, 32), b = inputs.of_head("b", 1, 0, 32);
  ASSERT_EQ(a.size(), 32 * 16);
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    squares += a[i] * a[i];
    EXPECT_TRUE(0 < -b[i] / a[i] && -b[i] / a[i] < 1) << i;
  }
  EXPECT_NEAR(squares, 32, 1e-5) << "rows of length one";
  EXPECT_NE(a, inputs.of_head("k", 1, 0, 32));
  low_rank.gates = GateDraw::layer;
  for (const double gate : LayerInputValues(low_rank).of_head("g", 0, 0, 32))
    EXPECT_TRUE(-std::exp(-0.5) <= gate && gate < 0) << gate;
}

/// The Frobenius norms of the matrices by which rank 1 maps the state in each head.
std::vector<double> norms_of_matrices(GateKind gate, GateDraw gates, Rule rule = Rule::delta) {
  const LayerProblem layer{.share = {1024, 4, 16, 2, 64, gate}, .ranks = 3, .gates = gates, .rule = rule};
  const LayerInputValues inputs(layer);
  std::vector<double> norms;
  for (int head = 0; head < 4; ++head) {
    const auto matrix = matrix_of(HeadInputs(inputs, head, 1024, 1024));
    norms.push_back(std::sqrt(std::inner_product(matrix.begin(), matrix.end(), matrix.begin(), 0.0)));
  }
  std::sort(norms.begin(), norms.end());
  return norms;
}

/// A sequence of 64 times d_k tokens a rank.
TEST(LayerInputs, MixedGatesOfADeltaRuleKeepMatricesOfAboutOne) {
  for (const GateKind gate : {GateKind::vector, GateKind::scalar, GateKind::none})
    EXPECT_GT(norms_of_matrices(gate, GateDraw::mixed).back(), 0.5) << to_string(gate);
  EXPECT_GT(norms_of_matrices(GateKind::vector, GateDraw::mixed).front(), 0.5) << "in every head";
  EXPECT_LT(norms_of_matrices(GateKind::none, GateDraw::weak).back(), 1e-6) << "the keys erase all";
  const auto of_low_rank = norms_of_matrices(GateKind::vector, GateDraw::mixed, Rule::low_rank);
  EXPECT_GT(of_low_rank.front(), 0.5) << "in every head";
  EXPECT_LT(of_low_rank.back(), 10);
}

}  // namespace
