// SPDX-License-Identifier: Apache-2.0
#include "harness/report/columns.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cases/collective_workload.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;

Record record_of(int ranks) {
  Record record;
  record.question = {
      .workload = collective_workload(find_collective("all_scan"), Shape{}, Direction::forward),
      .executor = "local",
      .ranks = ranks,
      .blocks = 4};
  record.blocks = 4;
  record.traffic = Claim{2 << 20, 3};
  record.link = {.alpha_seconds = 1e-6, .beta = 1e10};
  return record;
}

TEST(Table, RowsStandUnderTheirHead) {
  Record record = record_of(4);
  record.samples.seconds = {0.001, 0.002};
  record.summary = summarise(record.samples.seconds);
  const std::string head = collective_table().head(), row = collective_table().row(record);
  EXPECT_EQ(head.find("wrong") + 5, head.find('\n'));  // the last column, set flush right
  EXPECT_EQ(row.size() - 1, head.find('\n'));
}

TEST(Table, ShowsTimesInMicroseconds) {
  Record record = record_of(4);
  record.samples.seconds = {0.001234};
  record.summary = summarise(record.samples.seconds);
  EXPECT_THAT(collective_table().row(record), HasSubstr("1234"));
}

TEST(Table, ASkippedRowSaysWhatItWasAndWhy) {
  Record record = record_of(4);
  record.skipped = "a reason";
  const std::string row = collective_table().row(record);
  EXPECT_THAT(row, HasSubstr("all_scan"));
  EXPECT_THAT(row, HasSubstr("skipped: a reason"));
}

}  // namespace
