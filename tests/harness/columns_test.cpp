// SPDX-License-Identifier: Apache-2.0
#include "harness/columns.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace baton;
using testing::HasSubstr;

Record record_of(int ranks) {
  Record record;
  record.question = {
      .collective = &find_collective("all_scan"), .executor = "local", .ranks = ranks, .blocks = 4};
  record.blocks = 4;
  record.traffic = Claim{2 << 20, 3};
  record.link = {.alpha_seconds = 1e-6, .beta = 1e10};
  return record;
}

TEST(Table, RowsAreAsLongAsTheirHead) {
  Record record = record_of(4);
  record.samples.seconds = {0.001, 0.002};
  record.summary = summarise(record.samples.seconds);
  const std::string head = table_head();
  EXPECT_EQ(table_row(record).size(), head.find('\n') + 1);
}

TEST(Table, ShowsTimesInMicroseconds) {
  Record record = record_of(4);
  record.samples.seconds = {0.001234};
  record.summary = summarise(record.samples.seconds);
  EXPECT_THAT(table_row(record), HasSubstr("1234"));
}

TEST(Table, ASkippedRowSaysWhatItWasAndWhy) {
  Record record = record_of(4);
  record.skipped = "a reason";
  const std::string row = table_row(record);
  EXPECT_THAT(row, HasSubstr("all_scan"));
  EXPECT_THAT(row, HasSubstr("skipped: a reason"));
}

}  // namespace
