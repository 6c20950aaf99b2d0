// SPDX-License-Identifier: Apache-2.0
#include "harness/record/row.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/harness/record/made_case.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;
using testing::IsEmpty;

/// A row of one launch that takes 1 to 1.1 s, with this bound.
Row bounded(double bound_seconds, const char* executor = "local") {
  MadeCase made = made_case({1, 1.05, 1.1});
  made.bench_case.backend = &find_backend(executor);
  made.traffic.known_bound_seconds = bound_seconds;
  return made.row();
}

/// The same over launches whose bounds are these shares of their times.
Row launched(const std::vector<double>& shares) {
  Row row = bounded(geometric_mean(shares) * 1.05);
  row.launches = static_cast<int>(shares.size());
  row.bound_share = over_launches(shares);
  return row;
}

TEST(Impossible, IsARowFarBelowItsBound) {
  EXPECT_THAT(launched({1.2, 1.21, 1.19}).why_impossible(), HasSubstr("takes 83 % of its bound"));
  EXPECT_THAT(bounded(1.5).why_impossible(), HasSubstr("which cannot be"));
}

TEST(Impossible, IsNothingWithinTheErrorOfTheBound) {
  EXPECT_THAT(launched({1.01, 1.0, 1.02}).why_impossible(), IsEmpty()) << "within the margin";
  EXPECT_THAT(launched({1.5, 0.9, 1.2}).why_impossible(), IsEmpty()) << "launches differ by more";
  EXPECT_THAT(bounded(1.2).why_impossible(), IsEmpty()) << "one launch does not know the error of its bound";
  EXPECT_THAT(bounded(0.9).why_impossible(), IsEmpty());
}

TEST(Impossible, SaysNothingOfWhatMeasuresNoLink) {
  EXPECT_THAT(bounded(1.5, "simulator").why_impossible(), IsEmpty());
  Row crowded = bounded(1.5);
  add_conditions(crowded.result, {.cores = 1, .busy_threads = 2});
  EXPECT_THAT(crowded.why_impossible(), IsEmpty());
  Row skipped = bounded(1.5);
  skipped.result.remove("seconds");
  EXPECT_THAT(skipped.why_impossible(), IsEmpty());
}

}  // namespace
