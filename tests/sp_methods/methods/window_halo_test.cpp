// SPDX-License-Identifier: Apache-2.0
// What ranks send so that queries see their window: the rows of halos, counted in the schedules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;

/// Rows of keys and values that each rank sends in a pass, with one head of one channel each, of as
/// many bytes in a forward pass as in the way back of gradients.
std::vector<std::int64_t> sent_rows(const char* method, std::int64_t tokens, std::int64_t window, int ranks,
                                    Pass pass) {
  const Layer layer{.share = {tokens, 1, 1, 1, 1, GateKind::none}, .pass = pass, .mask = {.window = window}};
  std::vector<std::int64_t> rows;
  for (const Schedule& schedule : build_all(find_method(method), layer, ranks)) {
    std::int64_t elements = 0;
    for (const Step& step : schedule.steps())
      if (step.verb == Verb::send) elements += step.reads.front().count;
    rows.push_back(elements / 2);  // of a key and a value
  }
  return rows;
}

TEST(WindowHalo, ComesFromAsManyRanksAsHaveIt) {
  EXPECT_THAT(sent_rows("window_halo", 2, 4, 4, Pass::forward), testing::ElementsAre(3, 3, 2, 0));
  EXPECT_THAT(sent_rows("window_halo", 8, 4, 4, Pass::forward), testing::ElementsAre(3, 3, 3, 0));
  EXPECT_THAT(sent_rows("window_halo", 2, 100, 4, Pass::forward), testing::ElementsAre(6, 4, 2, 0));
}

TEST(WindowHalo, OfOneKeyIsEmpty) {
  for (const char* method : {"window_halo", "window_halo_zigzag"})
    EXPECT_THAT(sent_rows(method, 4, 1, 3, Pass::both), testing::Each(0)) << method;
}

TEST(WindowHalo, OfZigzagTokensIsOneForEachRunButWhereBothTouch) {
  EXPECT_THAT(sent_rows("window_halo_zigzag", 8, 3, 2, Pass::forward), testing::ElementsAre(2, 2));
  EXPECT_THAT(sent_rows("window_halo_zigzag", 8, 3, 4, Pass::forward), testing::ElementsAre(2, 4, 4, 2));
}

TEST(WindowHalo, GoesBackFromTheRanksThatHadIt) {
  const auto forward = sent_rows("window_halo", 8, 4, 4, Pass::forward);
  const auto both = sent_rows("window_halo", 8, 4, 4, Pass::both);
  std::vector<std::int64_t> back;
  for (std::size_t i = 0; i < both.size(); ++i) back.push_back(both[i] - forward[i]);
  EXPECT_THAT(back, testing::ElementsAre(0, 3, 3, 3));
  EXPECT_EQ(sent_rows("window_halo", 8, 4, 4, Pass::backward), both);
}

}  // namespace
