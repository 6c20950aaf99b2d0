// SPDX-License-Identifier: Apache-2.0
// The claim of every registered method, those of tomorrow included, against the count of its
// schedules at 1 to 16 ranks. Nothing runs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "collectives/collective.hpp"
#include "collectives/schedule/check.hpp"
#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;

constexpr Pass all_passes[]{Pass::forward, Pass::backward, Pass::both};
constexpr int most_ranks = 16;

/// The method under a scan, as it stands in a message.
std::string text(const SpMethod& method, const Layer& layer, const Split& split) {
  return fmt::format("{} {} {} {} {} {}{} groups {} scan '{}' on {} ranks, {} a node", method.name,
                     to_string(layer.pass), to_string(layer.mode), to_string(layer.mask),
                     fmt::format("{} {}", to_string(layer.rule), to_string(layer.share.gate)),
                     fmt::format("{} shares {}", to_string(layer.dtype), to_string(layer.shares)),
                     layer.share.latent ? " latent" : "", layer.groups, layer.scan, split.ranks,
                     split.ranks_per_node);
}

bool takes(const SpMethod& method, const Layer& layer, int ranks) {
  return !method.unsupported || !method.unsupported(layer, ranks);
}

/// Compares the claim with the count if the method takes the layer, with heads for each rank if it
/// must. False if there is no claim.
bool compare(const SpMethod& method, Layer layer, const Split& split) {
  layer.blocks = split.blocks;
  if (!takes(method, layer, split.ranks)) {
    layer.share.heads *= split.ranks;
    layer.share.kv_heads *= split.ranks;
  }
  if (!takes(method, layer, split.ranks)) return true;
  const std::optional<Cost> claim = method.claim(layer, split);
  if (!claim) return false;
  const Counts counts = check(method.name, build_all(method, layer, split.ranks, split.ranks_per_node));
  EXPECT_EQ(claim->sent_bytes, counts.busiest_sent_bytes()) << text(method, layer, split);
  if (claim->hops >= 0) {
    EXPECT_EQ(claim->hops, counts.hops) << text(method, layer, split);
  }
  return true;
}

/// Adds the same layers of softmax attention under other masks: the full one, under which a rank's
/// queries may travel to all others; windows that are shorter than a share, longer than two, and
/// longer than any sequence; documents of ranks, and others.
void add_masks(std::vector<Layer>& all) {
  const std::size_t plain = all.size();
  for (std::size_t i = 0; i < plain; ++i) {
    all.push_back(all[i]);
    all.back().mask.kind = MaskKind::full;
    if (all[i].groups > 1 || all[i].share.kv_heads > 0) continue;
    for (const std::int64_t window : {1, 60, 300, 4000}) {
      all.push_back(all[i]);
      all.back().mask.window = window;
    }
    for (const auto& starts : {std::vector<std::int64_t>{0, 128, 256, 384, 512}, {0, 5, 200, 201, 900}}) {
      all.push_back(all[i]);
      all.back().starts = starts;
    }
  }
}

/// All settings of a method with its own scan.
std::vector<Layer> layers_of(const SpMethod& method) {
  const bool is_linear = method.attention == Attention::linear;
  std::vector<Layer> all;
  for (GateKind gate : {GateKind::vector, GateKind::none})
    for (Pass pass : all_passes)
      for (Mode mode : {Mode::overlapped, Mode::exposed, Mode::compute_only})
        for (int groups : {1, 2, 4})
          for (Dtype dtype : {Dtype::f32, Dtype::bf16})
            for (std::int64_t kv_heads : {0, 2})
              if (is_linear ? kv_heads == 0 : gate == GateKind::none)
                all.push_back({.share = {128, 4, 64, 128, 64, gate, kv_heads},
                               .pass = pass,
                               .mode = mode,
                               .groups = groups,
                               .dtype = dtype});
  // The same under rules with matrices, which those that do not know them refuse.
  if (is_linear)
    for (std::size_t i = 0, count = all.size(); i < count; ++i)
      for (const Rule rule : {Rule::delta, Rule::low_rank}) {
        all.push_back(all[i]);
        all.back().rule = rule;
      }
  if (!is_linear) add_masks(all);
  // Latent keys of 128 channels with values of 64, one head of them for all queries.
  const std::vector<Layer> others = is_linear ? std::vector<Layer>{} : all;
  for (Layer layer : others)
    if (layer.share.kv_heads == 0) {
      if (layer.mask.kind != MaskKind::causal || layer.mask.window > 300) continue;
      layer.share = {128, 4, 128, 64, 64, GateKind::none, 1, true};
      all.push_back(layer);
    }
  return all;
}

class EveryClaim : public testing::TestWithParam<const SpMethod*> {};

TEST_P(EveryClaim, IsWhatIsCounted) {
  for (int ranks = 1; ranks <= most_ranks; ++ranks)
    for (const Layer& layer : layers_of(*GetParam()))
      EXPECT_TRUE(compare(*GetParam(), layer, {.ranks = ranks, .blocks = 3}))
          << "no claim: " << text(*GetParam(), layer, {.ranks = ranks});
}

TEST_P(EveryClaim, IsWhatIsCountedUnderEveryScanThatClaims) {
  if (GetParam()->scan.empty()) GTEST_SKIP() << "runs no scan";
  for (const Collective* scan : collectives()) {
    // What a native sends is claimed and not counted.
    const Shape shape{1, 4, 4, 1};
    if (scan->kind != Kind::exclusive_scan || !build(*scan, shape, 0, {.ranks = 2}).natives().empty())
      continue;
    for (int ranks = 1; ranks <= most_ranks; ++ranks)
      for (const Pass pass : all_passes)
        for (const Rule rule : {Rule::decay, Rule::delta, Rule::low_rank})
          for (const int ranks_per_node : {0, 3}) {
            const Layer layer{.share = {8, 2, 9, 3, 8}, .rule = rule, .pass = pass, .scan = scan->name};
            const bool is_claimed =
                compare(*GetParam(), layer, {.ranks = ranks, .blocks = 3, .ranks_per_node = ranks_per_node});
            const bool has_two_scans_a_pass = GetParam()->layout == Layout::zigzag;
            EXPECT_TRUE(is_claimed ||
                        (has_two_scans_a_pass && ranks_per_node > 0 && ranks % ranks_per_node != 0));
          }
  }
}

/// A share longer than a halo, and one that is shorter. Slices of matrices on three ranks are not
/// claimed.
TEST_P(EveryClaim, OfAConvolutionIsWhatIsCounted) {
  if (!GetParam()->convolves) GTEST_SKIP() << "has no convolution";
  for (int ranks = 1; ranks <= most_ranks; ++ranks)
    for (Layer layer : layers_of(*GetParam())) {
      if (layer.dtype == Dtype::bf16 || layer.groups > 2) continue;
      layer.share.conv = 4;
      for (const std::int64_t tokens : {8, 2}) {
        layer.share.tokens = tokens;
        const bool is_claimed = compare(*GetParam(), layer, {.ranks = ranks, .blocks = 3});
        EXPECT_TRUE(is_claimed || (GetParam()->name == "linear_two_shot" && ranks == 3))
            << "no claim: " << text(*GetParam(), layer, {.ranks = ranks});
      }
    }
}

/// Shares of 130 tokens and of fewer than there are ranks; given ones that are empty at the end, in
/// the middle, and on all ranks but the first or the last one.
std::vector<Shares> unequal_shares(int ranks) {
  std::vector<Shares> all{
      {ShareRule::even, 130}, {ShareRule::last, 130}, {ShareRule::even, 5}, {ShareRule::even, 1}};
  std::vector<std::int64_t> end(ranks, 3), middle(ranks, 3), first(ranks, 0), last(ranks, 0);
  end.back() = middle[ranks / 2] = 0;
  end.front() = middle.front() = 50;
  first.front() = last.back() = 4;
  for (const auto& given : {end, middle, first, last})
    all.push_back({ShareRule::given, std::reduce(given.begin(), given.end()), given});
  return all;
}

TEST_P(EveryClaim, OfUnequalSharesIsWhatIsCounted) {
  if (!GetParam()->shares_unequally) GTEST_SKIP() << "has equal shares";
  for (int ranks = 1; ranks <= most_ranks; ++ranks)
    for (Layer layer : layers_of(*GetParam())) {
      if (layer.groups > 1 || (layer.mask.has_window() && layer.mask.window > 60)) continue;
      for (const Shares& shares : unequal_shares(ranks))
        for (const std::int64_t conv : {0, 4}) {
          if (conv > 0 && (!GetParam()->convolves || layer.dtype == Dtype::bf16)) continue;
          layer.share.conv = conv;
          layer.shares = shares;
          layer.mask.end = shares.sequence;
          layer.share.tokens = cut_of(layer, GetParam()->layout, ranks).tokens;
          const bool is_claimed = compare(*GetParam(), layer, {.ranks = ranks, .blocks = 3});
          EXPECT_TRUE(is_claimed || (conv > 0 && GetParam()->name == "linear_two_shot" && ranks == 3))
              << "no claim: " << text(*GetParam(), layer, {.ranks = ranks});
        }
    }
}

/// Ten tokens of one head with d_k = d_v = 1 on 4 ranks: all rows but the two of one rank, and
/// backward all gradients too, without states all but the own ones.
TEST(Claims, ARingOfUnequalSharesSendsAllBlocksButOne) {
  Layer layer{.share = {3, 1, 1, 1, 1, GateKind::none}, .shares = {ShareRule::even, 10}};
  EXPECT_EQ(find_method("ring_attention_softmax").claim(layer, {.ranks = 4}), (Cost{64, 3}));
  layer.pass = Pass::backward;
  EXPECT_EQ(find_method("ring_attention_softmax").claim(layer, {.ranks = 4}), (Cost{144, 4}));
  EXPECT_EQ(find_method("ring_attention").claim(layer, {.ranks = 4}), (Cost{128, 4}));
}

/// Three rows of q, k and v in the tensors' type, or their gradients in f32, beside a state.
TEST(Claims, AConvolutionSendsItsHalo) {
  Layer layer{.share = {128, 2, 4, 6, 4}, .pass = Pass::forward};
  layer.share.conv = 4;
  const std::int64_t state = 2 * 4 * 6 * 4, rows = 3 * 2 * (4 + 4 + 6) * 4;
  EXPECT_EQ(find_method("zeco").claim(layer, {.ranks = 4}), (Cost{state + rows, 3}));
  EXPECT_EQ(find_method("zeco_zigzag").claim(layer, {.ranks = 4}), (Cost{2 * (state + rows), 6}));
  EXPECT_EQ(find_method("local").claim(layer, {.ranks = 4}), Cost{});
  layer.share.tokens = 1;
  EXPECT_EQ(find_method("zeco").claim(layer, {.ranks = 3}), (Cost{state + rows / 3 * 2, 2}))
      << "the first rank has one row for each of the others";
}

/// Half as many heads of q and k as of values. What crosses does not have them, but for rows of a
/// convolution and under Ulysses.
TEST_P(EveryClaim, OfFewerHeadsOfQAndKIsWhatIsCounted) {
  if (!GetParam()->groups_heads) GTEST_SKIP() << "has as many";
  for (int ranks = 1; ranks <= most_ranks; ++ranks)
    for (Layer layer : layers_of(*GetParam())) {
      if (layer.share.gate == GateKind::none || layer.dtype == Dtype::bf16 || layer.groups > 2) continue;
      layer.share.heads *= ranks;
      Layer few = layer;
      few.share.qk_heads = layer.share.heads / 2;
      const Split split{.ranks = ranks, .blocks = 3};
      if (!takes(*GetParam(), few, ranks)) continue;
      ASSERT_TRUE(compare(*GetParam(), few, split));
      const Cost of_all = GetParam()->claim(layer, split).value(),
                 cost = GetParam()->claim(few, split).value();
      EXPECT_EQ(cost.hops, of_all.hops) << text(*GetParam(), few, split);
      if (GetParam()->name == "ulysses" && ranks > 1)
        EXPECT_LT(cost.sent_bytes, of_all.sent_bytes) << text(*GetParam(), few, split);
      else
        EXPECT_EQ(cost.sent_bytes, of_all.sent_bytes) << text(*GetParam(), few, split);
      few.share.conv = 4;
      const bool is_claimed = compare(*GetParam(), few, split);
      EXPECT_TRUE(is_claimed || (GetParam()->name == "linear_two_shot" && ranks == 3));
    }
}

/// Three sequences on 4 ranks, which cut a state into equal parts.
TEST_P(EveryClaim, OfABatchIsThatOfASequenceTimesItsSize) {
  for (Layer layer : layers_of(*GetParam())) {
    if (!takes(*GetParam(), layer, 4)) continue;
    Layer three = layer;
    three.share.batch = 3;
    three.share.heads *= 3;
    three.share.kv_heads *= 3;
    const Split split{.ranks = 4, .blocks = 1};
    ASSERT_TRUE(compare(*GetParam(), three, split));
    if (GetParam()->name == "linear_two_shot") continue;  // whose slices are of whole rows
    const Cost one = GetParam()->claim(layer, split).value(), all = GetParam()->claim(three, split).value();
    EXPECT_EQ(all.sent_bytes, 3 * one.sent_bytes) << text(*GetParam(), layer, split);
    EXPECT_EQ(all.hops, one.hops) << text(*GetParam(), layer, split);
  }
}

/// Rank 0 alone sends forward and rank 1 alone sends backward.
TEST(Claims, TwoRanksOfAChainSendOneStateEachInBothPasses) {
  const Layer layer{.share = {8, 2, 4, 6, 4}, .pass = Pass::both};
  EXPECT_EQ(find_method("zeco").claim(layer, {.ranks = 2}), (Cost{2 * 4 * 6 * 4, 2}));
  EXPECT_EQ(find_method("zeco").claim(layer, {.ranks = 3}), (Cost{2 * 2 * 4 * 6 * 4, 4}));
}

/// One state and one matrix a head have as many bytes here. Both passes send to other ranks.
TEST(Claims, UnderADeltaRuleAChainSendsOneStateAndOthersSendMatrices) {
  const auto states = [](const char* method, int ranks) {
    const Layer layer{.share = {64, 16, 8, 8, 8}, .rule = Rule::delta};
    return static_cast<double>(find_method(method).claim(layer, {.ranks = ranks})->sent_bytes) /
           (16 * 8 * 8 * 4);
  };
  const std::map<const char*, std::array<double, 3>> expected{{"zeco", {1, 1, 1}},
                                                              {"zeco_corrected", {1, 1, 1}},
                                                              {"lasp1", {1, 1, 1}},
                                                              {"lasp2", {6, 14, 30}},
                                                              {"lasp2_as_released", {6, 14, 30}},
                                                              {"linear_doubling", {3, 5, 7}},
                                                              {"linear_two_shot", {2, 2.5, 2.75}}};
  for (const auto& [method, of_ranks] : expected)
    EXPECT_THAT((std::array{states(method, 4), states(method, 8), states(method, 16)}),
                testing::ContainerEq(of_ranks))
        << method;
}

TEST(Claims, NothingIsClaimedUnderALibrarysScan) {
  const Layer layer{.share = {8, 2, 4, 6, 4}, .scan = "mpi_exscan"};
  EXPECT_EQ(find_method("zeco").claim(layer, {.ranks = 4}), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(, EveryClaim, testing::ValuesIn(sp_methods()),
                         [](const auto& method) { return method.param->name; });

}  // namespace
