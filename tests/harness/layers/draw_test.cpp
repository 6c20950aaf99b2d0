// SPDX-License-Identifier: Apache-2.0
// What a layer is drawn by is in names, in the key of its oracle, and in its smaller case.
#include "harness/layers/draw.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace baton;
using testing::ElementsAre;

const LayerShape shape{64, 4, 16, 24, 8, GateKind::vector, 0, false};

TEST(LayerDraw, NoTwoShapesOrDrawsHaveOneName) {
  std::set<std::string> names;
  int count = 0;
  const auto add = [&](const std::function<void(LayerShape&, LayerDraw&)>& change) {
    LayerShape share = shape;
    LayerDraw draw;
    change(share, draw);
    names.insert(axes_of(share, draw).folded(in_name));
    ++count;
  };
  add([](auto&, auto&) {});
  add([](auto& share, auto&) { share.tokens = 65; });
  add([](auto& share, auto&) { share.heads = 8; });
  add([](auto& share, auto&) { share.d_k = 17; });
  add([](auto& share, auto&) { share.d_v = 25; });
  add([](auto& share, auto&) { share.chunk = 16; });
  add([](auto& share, auto&) { share.gate = GateKind::scalar; });
  add([](auto& share, auto&) { share.kv_heads = 2; });
  add([](auto& share, auto&) { share.latent = true; });
  add([](auto& share, auto&) { share.batch = 2; });
  add([](auto& share, auto&) { share.conv = 4; });
  add([](auto& share, auto&) { share.qk_heads = 2; });
  add([](auto&, auto& draw) { draw.gates = GateDraw::weak; });
  add([](auto&, auto& draw) { draw.packing.mean = 5; });
  add([](auto&, auto& draw) { draw.packing = {.mean = 5, .draw = LengthDraw::lognormal}; });
  add([](auto&, auto& draw) { draw.packing.lengths = {3, 4}; });
  add([](auto&, auto& draw) { draw.packing.lengths = std::vector<std::int64_t>(50, 3); });
  add([](auto&, auto& draw) { draw.packing.lengths = std::vector<std::int64_t>(50, 4); });
  EXPECT_EQ(static_cast<int>(names.size()), count);
}

TEST(LayerDraw, NoTwoProblemsShareTheirResults) {
  std::set<std::string> keys;
  int count = 0;
  const auto add = [&](const std::function<void(LayerProblem&)>& change) {
    LayerProblem problem{.share = shape};
    change(problem);
    keys.insert(oracle_key(problem));
    ++count;
  };
  add([](auto&) {});
  add([](auto& one) { one.attention = Attention::softmax; });
  add([](auto& one) { one.share.d_v = 25; });
  add([](auto& one) { one.share.latent = true; });
  add([](auto& one) { one.share.batch = 2; });
  add([](auto& one) { one.share.conv = 4; });
  add([](auto& one) { one.share.qk_heads = 2; });
  add([](auto& one) { one.ranks = 2; });
  add([](auto& one) { one.alone = true; });
  add([](auto& one) { one.gates = GateDraw::weak; });
  add([](auto& one) { one.seed = 2; });
  add([](auto& one) { one.dtype = Dtype::bf16; });
  add([](auto& one) { one.rule = Rule::delta; });
  add([](auto& one) { one.rule = Rule::low_rank; });
  add([](auto& one) { one.starts = {0, 5}; });
  add([](auto& one) { one.starts = {0, 6}; });
  add([](auto& one) { one.has_closed_gates = true; });
  add([](auto& one) { one.mask.kind = MaskKind::full; });
  add([](auto& one) { one.mask.end = 60; });
  add([](auto& one) { one.mask.window = 60; });
  add([](auto& one) { one.states = States::in; });
  EXPECT_EQ(static_cast<int>(keys.size()), count);
}

TEST(LayerDraw, IsTheSameWhereTheLayerIsReducedButForShorterDocuments) {
  const LayerDraw small = reduced({GateDraw::strong, {.mean = 50, .seed = 7}}, 200, 20);
  EXPECT_EQ(small.gates, GateDraw::strong);
  EXPECT_EQ(small.packing.mean, 5);
  EXPECT_EQ(small.packing.seed, 7u);
  EXPECT_EQ(reduced({}, 200, 20).packing.mean, 0) << "one document stays one";
  const LayerDraw few = reduced({.packing = {.lengths = {150, 0, 50}}}, 200, 20);
  EXPECT_EQ(few.packing.mean, 6) << "a tenth of 67";
  EXPECT_TRUE(few.packing.lengths.empty());
}

TEST(Reduced, SharesDoNotVanish) {
  const auto given = [](std::vector<std::int64_t> shares, int ranks) {
    const Shares all{ShareRule::given, std::reduce(shares.begin(), shares.end()), shares};
    return reduced(all, ranks, *std::ranges::max_element(shares), 20);
  };
  EXPECT_THAT(given({1, 0, 500}, 3).given, ElementsAre(1, 0, 20));
  EXPECT_THAT(given({0, 0, 5}, 2).given, ElementsAre(0, 20)) << "some rank has a token";
  EXPECT_EQ(given({300, 0, 700}, 3).sequence, 9 + 20);
  EXPECT_EQ(reduced({ShareRule::last, 1000}, 3, 400, 20).sequence, 59);
}

}  // namespace
