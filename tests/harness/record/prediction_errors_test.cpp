// SPDX-License-Identifier: Apache-2.0
#include "harness/record/prediction_errors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/record/made_case.hpp"

namespace {

using namespace baton;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Row row_of(const char* name, std::optional<double> predicted, double measured) {
  MadeCase made = made_case({measured});
  made.bench_case.workload = collective_workload(find_collective(name), Shape{}, Direction::forward);
  Row row = made.row();
  row.result.set("predicted_seconds", predicted);
  return row;
}

TEST(PredictionErrors, SayNothingWithoutPredictions) {
  PredictionErrors errors;
  EXPECT_THAT(errors.table(), IsEmpty());
  errors.add(row_of("all_scan", std::nullopt, 1));
  Row skipped = row_of("all_scan", 1, 1);
  skipped.result.remove("seconds");
  errors.add(skipped);
  EXPECT_THAT(errors.table(), IsEmpty());
}

TEST(PredictionErrors, AreGeometricMeansByNameAndOverAll) {
  PredictionErrors errors;
  errors.add(row_of("all_scan", 2, 1));  // twice
  errors.add(row_of("all_scan", 1, 2));  // half: no bias in the mean, but an error of 100 %
  errors.add(row_of("two_shot", 3, 2));
  const std::string table = errors.table();
  EXPECT_THAT(table, ContainsRegex("# all_scan +2 +1\\.00 +100 +100\n"));
  EXPECT_THAT(table, ContainsRegex("# two_shot +1 +1\\.50 +50 +50\n"));
  // (2 * 1/2 * 3/2)^(1/3) = 1.145; (2 * 2 * 3/2)^(1/3) = 1.817
  EXPECT_THAT(table, ContainsRegex("# all +3 +1\\.14 +82 +100\n"));
}

TEST(PredictionErrors, HaveALineForEachNameUnderAHead) {
  PredictionErrors errors;
  errors.add(row_of("ring_scan", 1, 1));
  const std::string table = errors.table();
  EXPECT_THAT(table, HasSubstr("predicted against measured"));
  EXPECT_THAT(table, HasSubstr("ring_scan"));
  EXPECT_THAT(table, Not(HasSubstr("all_scan")));
}

}  // namespace
