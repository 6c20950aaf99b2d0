// SPDX-License-Identifier: Apache-2.0
#include "collectives/collective.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>

#include "collectives/schedule/check.hpp"
#include "collectives/schedule/errors.hpp"

namespace {

using namespace baton;

TEST(Registry, FindsByNameAndRefusesDoubles) {
  EXPECT_EQ(find_collective("all_scan").kind, Kind::exclusive_scan);
  EXPECT_THROW(find_collective("no_such_scan"), UsageError);
  const Collective second{.name = "all_scan", .claim = find_collective("all_scan").claim};
  EXPECT_EXIT(Registered{second}, testing::ExitedWithCode(2), "collective 'all_scan' is registered twice");
}

TEST(Registry, RefusesACollectiveWithoutAClaim) {
  EXPECT_EXIT(Registered({.name = "free"}), testing::ExitedWithCode(2), "collective 'free' has no .claim");
}

TEST(Registry, ListsEveryNameOnce) {
  std::vector<std::string> names;
  for (const Collective* collective : collectives()) names.push_back(collective->name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(AllScan, SendsOneStateARankWhateverTheBlocks) {
  const Shape shape{2, 8, 4, 1};
  for (int blocks : {1, 3, 16, 99}) {
    const auto counts =
        check("all_scan", build_all(find_collective("all_scan"), shape, {.ranks = 5, .blocks = blocks}));
    EXPECT_EQ(counts.busiest_sent_bytes(), 2 * 8 * 4 * 4);  // heads*d_k*d_v elements: no decay travels
    EXPECT_EQ(counts.hops, 4);
    EXPECT_EQ(counts.ranks[2].messages, 2 * std::min(blocks, 16));
  }
}

TEST(AllScan, ByHandClaimsTheSame) {
  const auto& schedule = find_collective("all_scan");
  const auto& native = find_collective("all_scan_by_hand");
  for (int ranks : {1, 2, 5}) {
    const auto expected = schedule.claim(Shape{}, {ranks, 4}), claimed = native.claim(Shape{}, {ranks, 4});
    EXPECT_EQ(claimed->sent_bytes, expected->sent_bytes);
    EXPECT_EQ(claimed->hops, expected->hops);
  }
}

/// Bytes of the rank that sends or receives most, in states, if ranks have affine maps.
double states_of_busiest(const std::string& name, int ranks) {
  const Shape shape{.heads = 16, .d_k = 4, .d_v = 4, .map = MapKind::affine};
  std::int64_t most = 0;
  for (const Traffic& rank : check(name, build_all(find_collective(name), shape, {.ranks = ranks})).ranks)
    most = std::max({most, rank.sent_bytes, rank.received_bytes});
  return static_cast<double>(most) / static_cast<double>(shape.state_bytes());
}

TEST(AffineMaps, AreSentByAllButTheChain) {
  const std::pair<const char*, std::array<double, 3>> expected[]{
      {"all_scan", {1, 1, 1}},
      {"ring_scan", {1, 1, 1}},
      {"all_gather_scan_trimmed", {5, 13, 29}},
      {"all_gather_scan", {6, 14, 30}},
      {"recursive_doubling", {3, 5, 7}},
      {"two_shot", {2, 2.5, 2.75}},
  };
  for (const auto& [name, states] : expected)
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(states_of_busiest(name, 4 << i), states[i]) << name << " " << (4 << i);
}

TEST(AffineMaps, ChangeAnElementOfAStateByTwoOperationsAKey) {
  const Shape shape{.heads = 3, .d_k = 8, .d_v = 5, .map = MapKind::affine};
  const auto counts =
      check("all_scan", build_all(find_collective("all_scan"), shape, {.ranks = 4, .blocks = 7}));
  EXPECT_EQ(counts.ranks[1].flops, 2.0 * 8 * static_cast<double>(shape.state_elements()));
  EXPECT_EQ(counts.ranks[3].flops, 0);
}

TEST(AffineMaps, ActTransposedInReverse) {
  const Shape shape{.heads = 2, .d_k = 3, .d_v = 2, .map = MapKind::affine};
  for (const Direction direction : {Direction::forward, Direction::reverse}) {
    const auto schedule = build(find_collective("ring_scan"), shape, 1, {.ranks = 3, .direction = direction});
    ASSERT_EQ(schedule.steps()[1].verb, Verb::combine);
    EXPECT_EQ(schedule.steps()[1].combine.form.kind, MapKind::affine);
    EXPECT_EQ(schedule.steps()[1].combine.form.transposed, direction == Direction::reverse);
  }
}

TEST(Embedding, RemembersTheCollectiveThatRecordedAStep) {
  const auto schedule = build(find_collective("all_gather_scan"), {1, 2, 2, 1}, 1, {.ranks = 3});
  const auto& first = schedule.steps().front();
  EXPECT_EQ(schedule.regions()[first.region], "ring_all_gather");
  EXPECT_EQ(schedule.regions()[schedule.steps().back().region], "");
}

TEST(Build, ReversesTheChainFromTheSameText) {
  const Shape shape{1, 2, 2, 1};
  const auto forward = build(find_collective("ring_scan"), shape, 1, {.ranks = 3});
  const auto reverse =
      build(find_collective("ring_scan"), shape, 1, {.ranks = 3, .direction = Direction::reverse});
  ASSERT_EQ(forward.steps().size(), reverse.steps().size());
  EXPECT_EQ(forward.steps().front().peer, 0);
  EXPECT_EQ(reverse.steps().front().peer, 2);
}

}  // namespace
