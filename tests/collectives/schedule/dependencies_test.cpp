// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/dependencies.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>
#include <vector>

#include "collectives/schedule/schedule.hpp"

namespace {

using namespace baton;
using Steps = std::vector<int>;

TEST(Dependencies, ReadersWaitForTheLastWriter) {
  Dependencies d;
  d.record(0, {{0, 0, 8}}, {});
  d.record(1, {{0, 4, 4}}, {});
  EXPECT_EQ(d.record(2, {}, {{0, 0, 4}}), (Steps{0}));
  EXPECT_EQ(d.record(3, {}, {{0, 2, 4}}), (Steps{0, 1}));
}

TEST(Dependencies, WritersWaitForReadersAndThroughThemForWriters) {
  Dependencies d;
  d.record(0, {{0, 0, 8}}, {});
  d.record(1, {}, {{0, 0, 4}});
  EXPECT_EQ(d.record(2, {{0, 0, 4}}, {}), (Steps{1}));
  EXPECT_EQ(d.record(3, {{0, 4, 4}}, {}), (Steps{0}));
}

TEST(Dependencies, NeighboursAndOtherBuffersAreFree) {
  Dependencies d;
  d.record(0, {{0, 0, 4}}, {});
  EXPECT_EQ(d.record(1, {{0, 4, 4}}, {}), Steps{});
  EXPECT_EQ(d.record(2, {}, {{1, 0, 4}}), Steps{});
}

TEST(Dependencies, AStepInPlaceDoesNotWaitForItself) {
  Dependencies d;
  EXPECT_EQ(d.record(0, {{0, 0, 4}}, {{0, 0, 4}}), Steps{});
  EXPECT_EQ(d.record(1, {{0, 0, 4}}, {{0, 0, 4}}), (Steps{0}));
}

TEST(Dependencies, CopiesAndAssignedOnesGoOnByThemselves) {
  Dependencies first;
  first.record(0, {{0, 0, 8}}, {});
  Dependencies copy = first;
  first.record(1, {{0, 0, 4}}, {});
  EXPECT_EQ(copy.record(1, {}, {{0, 0, 8}}), (Steps{0}));
  EXPECT_EQ(first.record(2, {}, {{0, 0, 8}}), (Steps{0, 1}));
  copy = std::move(first);
  EXPECT_EQ(copy.record(3, {{0, 0, 8}}, {}), (Steps{2}));
}

/// Everything that a step waits for, directly or through others.
std::set<int> closure(const std::vector<Steps>& waits_for, int step) {
  std::set<int> all;
  for (int before : waits_for[step]) {
    all.insert(before);
    all.merge(closure(waits_for, before));
  }
  return all;
}

TEST(Dependencies, OrderEveryConflictOfRandomSteps) {
  std::mt19937 random(7);
  const auto slice = [&] {
    const std::int64_t offset = random() % 12;
    return Slice{static_cast<int>(random() % 2), offset, static_cast<std::int64_t>(random() % (16 - offset))};
  };
  const auto overlap = [](const Slice& a, const Slice& b) {
    return a.buffer == b.buffer && std::max(a.offset, b.offset) < std::min(a.end(), b.end());
  };
  for (int trial = 0; trial < 200; ++trial) {
    Dependencies d;
    std::vector<Slice> writes, reads;
    std::vector<Steps> waits_for;
    for (int i = 0; i < 12; ++i) {
      writes.push_back(slice());
      reads.push_back(slice());
      waits_for.push_back(d.record(i, {writes[i]}, {reads[i]}));
      const auto before = closure(waits_for, i);
      for (int j = 0; j < i; ++j) {
        const bool conflict =
            overlap(writes[j], reads[i]) || overlap(writes[j], writes[i]) || overlap(reads[j], writes[i]);
        EXPECT_TRUE(!conflict || before.contains(j))
            << "trial " << trial << ": " << i << " must wait for " << j;
      }
      for (int j : waits_for[i])
        EXPECT_TRUE(overlap(writes[j], reads[i]) || overlap(writes[j], writes[i]) ||
                    overlap(reads[j], writes[i]))
            << "trial " << trial << ": " << i << " waits for " << j << " needlessly";
    }
  }
}

/// Ranks call a library in one order, whatever their data wait for.
TEST(Dependencies, NativesFollowOneAnotherThoughTheyShareNoData) {
  Schedule s(0, 2);
  const Slice first = s.scratch("first", 4), second = s.scratch("second", 4);
  s.native("any", 1, {first}, {});
  s.native("any", 1, {second}, {});
  EXPECT_EQ(s.steps()[0].waits_for, Steps{});
  EXPECT_EQ(s.steps()[1].waits_for, Steps{0});
  s.fence();
  s.native("any", 1, {second}, {});
  EXPECT_EQ(s.steps()[2].waits_for, Steps{1}) << "once";
}

}  // namespace
