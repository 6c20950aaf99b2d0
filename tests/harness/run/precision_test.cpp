// SPDX-License-Identifier: Apache-2.0
#include "harness/run/precision.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/record/comparisons.hpp"
#include "tests/harness/run/made_run.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;

class Precision : public testing::Test {
 protected:
  /// Adds a launch in which case 0 takes `first` seconds, and case 1 takes 1.
  void launch(double first) {
    ++launches_;
    standings_.add(launches_, 0, {first});
    standings_.add(launches_, 1, {1});
  }
  std::optional<Widest> widest() const { return widest_interval(standings_, 4); }

  Options options_ = made_options();
  Comparisons standings_{options_.cases, ""};
  int launches_ = 0;
};

TEST_F(Precision, IsThatOfTheWidestInterval) {
  launch(2);
  EXPECT_FALSE(widest()) << "one launch has no interval";
  launch(2.2);
  launch(2);
  ASSERT_TRUE(widest());
  EXPECT_EQ(widest()->index, 0);
  EXPECT_GT(widest()->percent, 5);
  EXPECT_FALSE(is_narrow(widest(), 3, 5));
  EXPECT_TRUE(is_narrow(widest(), 3, 100));
}

TEST_F(Precision, TakesThreeLaunches) {
  launch(1);
  launch(1);
  EXPECT_FALSE(is_narrow(widest(), 2, 5)) << "two can agree by chance";
  launch(1);
  EXPECT_TRUE(is_narrow(widest(), 3, 5));
}

TEST_F(Precision, IsNotWaitedForWhereNothingIsTimed) { EXPECT_TRUE(is_narrow(std::nullopt, 3, 5)); }

TEST_F(Precision, ItsEndIsToldWithTheCaseThatIsTooWide) {
  for (const double seconds : {2.0, 3.0, 2.0}) launch(seconds);
  EXPECT_THAT(end_of_stop_at(widest(), options_.cases, 3, 1000),
              HasSubstr("After 3 launches every interval"));
  std::string gave_up = end_of_stop_at(widest(), options_.cases, 3, 5);
  std::replace(gave_up.begin(), gave_up.end(), '\n', ' ');
  EXPECT_THAT(gave_up, HasSubstr("# --stop-at 5 gave up after 3 launches"));
  EXPECT_THAT(gave_up, HasSubstr("all_scan/local/ranks:2/"));
  EXPECT_THAT(end_of_stop_at(std::nullopt, options_.cases, 1, 5), HasSubstr("gave up after 1 launch: "));
}

}  // namespace
