// SPDX-License-Identifier: Apache-2.0
// What the all-to-alls cost, and that they run among some of the ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "collectives/collective.hpp"
#include "collectives/executors/executor.hpp"
#include "collectives/schedule/check.hpp"

namespace {

using namespace baton;

constexpr Shape shape{.heads = 2, .d_k = 3, .d_v = 5, .tokens = 8};  // 128 elements

Counts counts_of(const char* name, int ranks) {
  return check(name, build_all(find_collective(name), shape, {.ranks = ranks}));
}

TEST(AllToAll, BruckSendsFewerMessagesAndMoreBytes) {
  const Counts direct = counts_of("direct_all_to_all", 8), bruck = counts_of("bruck_all_to_all", 8);
  constexpr std::int64_t block = 128 / 8 * element_bytes;
  for (const Traffic& rank : direct.ranks) {
    EXPECT_EQ(rank.messages, 2 * 7);
    EXPECT_EQ(rank.sent_bytes, 7 * block);
  }
  for (const Traffic& rank : bruck.ranks) {
    EXPECT_EQ(rank.messages, 2 * 3);
    EXPECT_EQ(rank.sent_bytes, 3 * 4 * block) << "half of the blocks in each of log2 P messages";
  }
  EXPECT_EQ(bruck.hops, 3);
}

TEST(AllToAll, PairwiseSendsOneMessageAfterTheOther) {
  for (int ranks : {2, 4, 5, 8}) {
    EXPECT_EQ(counts_of("pairwise_all_to_all", ranks).hops, ranks - 1);
    EXPECT_EQ(counts_of("direct_all_to_all", ranks).hops, 1);
  }
}

TEST(AllToAll, ABlockIsRoundedUp) {
  EXPECT_EQ(shape.block_elements(1), 128);
  EXPECT_EQ(shape.block_elements(5), 26);
  EXPECT_EQ(build(find_collective("direct_all_to_all"), shape, 0, {.ranks = 5}).buffer("own").count, 5 * 26);
}

/// Even and odd ranks change blocks among themselves; rank r has 10 r + j for the j-th of its kind.
class AmongSome : public testing::TestWithParam<const char*> {
 protected:
  static constexpr int ranks = 6;

  static std::vector<Schedule> schedules() {
    std::vector<Schedule> all;
    for (int rank = 0; rank < ranks; ++rank) {
      Schedule s(rank, ranks);
      const Slice own = s.input("own", ranks / 2), into = s.output("into", ranks / 2);
      const Among among(s, {rank % 2, rank % 2 + 2, rank % 2 + 4});
      embed(s, GetParam(), {{{}, own, 1}, into, 1});
      all.push_back(std::move(s));
    }
    return all;
  }
};

TEST_P(AmongSome, BlocksStayAmongThem) {
  check("among", schedules());
  const auto executor = find_executor("local").make(ranks);
  executor->prepare(schedules());
  for (int rank = 0; rank < ranks; ++rank) {
    const auto first = 10.0F * static_cast<float>(rank);
    executor->write(rank, {0, 0, 3}, std::vector{first, first + 1, first + 2});
  }
  executor->run();
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<float> got(3);
    executor->read(got, rank, {1, 0, 3});
    const auto place = static_cast<float>(rank / 2), first = 10.0F * static_cast<float>(rank % 2) + place;
    EXPECT_EQ(got, (std::vector{first, first + 20, first + 40})) << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(, AmongSome,
                         testing::Values("direct_all_to_all", "pairwise_all_to_all", "bruck_all_to_all"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
