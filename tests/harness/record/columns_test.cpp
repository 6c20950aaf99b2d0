// SPDX-License-Identifier: Apache-2.0
#include "harness/record/columns.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "harness/cases/collective_workload.hpp"
#include "harness/layers/workload.hpp"
#include "harness/record/record.hpp"
#include "harness/record/table.hpp"
#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;

Record record_of(int ranks) {
  Record record;
  record.bench_case = {
      .workload = collective_workload(find_collective("all_scan"), Shape{}, Direction::forward),
      .executor = "local",
      .ranks = ranks,
      .blocks = 4};
  record.blocks = 4;
  record.cost = Cost{2 << 20, 3};
  record.alpha_beta = {.alpha_seconds = 1e-6, .beta = 1e10};
  return record;
}

Record timed_record(std::vector<double> seconds) {
  Record record = record_of(4);
  record.samples.seconds = std::move(seconds);
  record.summary = summarise(record.samples.seconds);
  return record;
}

/// The wide table of cases like that of the record.
Table table_of(const Record& record, int launches = 2) { return wide_table(record.bench_case, 23, launches); }

/// The text of the cell under `title` in that table, without its padding.
std::string cell(const Record& record, const std::string& title) {
  const Table table = table_of(record);
  for (const auto* columns : {&table.bench_case, &table.answer})
    for (const Column& column : *columns)
      if (column.title == title) return column.cell(record);
  return "no such column";
}

TEST(Table, RowsStandUnderTheirHead) {
  const Record record = timed_record({0.001, 0.002});
  const std::string head = table_of(record).head(), row = table_of(record).row(record);
  const std::string last = table_of(record).answer.back().title;
  EXPECT_EQ(head.find(last + "\n") + last.size(), head.find('\n')) << "it is aligned to the right";
  EXPECT_EQ(row.size() - 1, head.find('\n'));
}

TEST(Table, ShowsTimesInMicroseconds) { EXPECT_EQ(cell(timed_record({0.001234}), "median"), "1234"); }

TEST(Table, ShowsNoShareAndNoRatioOfATimeThatIsZero) {
  Record record = timed_record({0, 0});
  record.standing.ratio = ratio_of_medians({0, 0}, {0, 0});
  EXPECT_EQ(bound_share().cell(record), "-");
  EXPECT_EQ(cell(record, "ratio"), "-");
}

TEST(Table, ASkippedRowSaysWhatItWasAndWhy) {
  Record record = record_of(4);
  record.skipped = "a reason";
  const std::string row = table_of(record).row(record);
  EXPECT_THAT(row, HasSubstr("all_scan"));
  EXPECT_THAT(row, HasSubstr("skipped: a reason"));
}

TEST(Columns, APredictionBeyondItsCalibrationIsMarked) {
  Record record = timed_record({0.001});
  EXPECT_EQ(cell(record, "predicted"), "-");
  record.predicted_seconds = 12.5e-6;
  EXPECT_EQ(cell(record, "predicted"), "12.50");
  record.extrapolated = "for a reason";
  EXPECT_EQ(cell(record, "predicted"), "12.50~");
  record.predicted_seconds.reset();  // a simulated row
  EXPECT_EQ(cell(record, "predicted"), "~");
}

TEST(Columns, TheShareOfTheBoundIsInPercent) {
  Record record = timed_record({0.001});
  const double bound = 3e-6 + (2 << 20) / 1e10;
  EXPECT_EQ(cell(record, "bound"), "212.7");
  EXPECT_EQ(cell(record, "% bound"), "21") << 100 * bound / 0.001;
  record.cost.reset();  // a native that does not tell
  EXPECT_EQ(cell(record, "bound"), "-");
  EXPECT_EQ(cell(record, "% bound"), "-");
  EXPECT_EQ(cell(record, "sent"), "-");
  EXPECT_EQ(cell(record, "hops"), "-");
}

TEST(Columns, RoundsBackToBackAreBoundByBytesAlone) {
  Record record = timed_record({0.001});
  record.bench_case.cadence = Cadence::streaming;
  EXPECT_EQ(cell(record, "bound"), "209.7");
  EXPECT_EQ(cell(record, "cadence"), "streaming");
}

TEST(Columns, ARatioHasItsInterval) {
  Record record = timed_record({0.001});
  EXPECT_EQ(cell(record, "ratio"), "-");
  record.standing.ratio = Ratio{1.234, {1.1, 1.3}};
  EXPECT_EQ(cell(record, "ratio"), "1.23 [1.10,1.30]");
}

TEST(Columns, LaunchesTakeThePlaceOfOneLaunch) {
  Record record = timed_record({0.001});
  record.standing.ratio = Ratio{2, {1, 3}};
  record.over_launches = OverLaunches{3, summarise({0.003}), {Ratio{4, {3, 5}}, std::nullopt}};
  EXPECT_EQ(cell(record, "median"), "3000");
  EXPECT_EQ(cell(record, "ratio"), "4.00 [3.00,5.00]");
  const Table one = table_of(record, 1);
  EXPECT_EQ(one.head().find("95 % interval"), std::string::npos);
  EXPECT_THAT(one.head(), HasSubstr("within one launch"));
}

TEST(Columns, AFailedCaseHasItsReason) {
  Record record = record_of(2);
  record.failure = Failure{.reason = "rank 1 died", .rank = 1, .step = {}};
  EXPECT_THAT(table_of(record).row(record), HasSubstr("failed: rank 1 died"));
}

TEST(Columns, AWrongRowSaysSo) {
  Record record = record_of(2);
  record.verified.wrong = 3;
  record.verified.first_wrong = "element 5 of rank 1";
  EXPECT_THAT(table_of(record).row(record), HasSubstr("wrong: 3 wrong elements, first element 5 of rank 1"));
}

TEST(Columns, AnErrorIsShownWhereRoundingsAreAllowed) {
  Record record = timed_record({0.001});
  EXPECT_EQ(cell(record, "error"), "-");
  record.verified = {.wrong = 2,
                     .first_wrong = {},
                     .relative_error = 1.5e-3,
                     .tolerance = 5e-3,
                     .elements = 0,
                     .tokens = 0,
                     .heads = {},
                     .seconds = 0.1,
                     .verified_case = std::nullopt};
  EXPECT_EQ(cell(record, "error"), "1.5e-03");
  EXPECT_EQ(cell(record, "wrong"), "2");
  record.verified.elements = 3 << 20;
  EXPECT_EQ(cell(record, "verified"), "3M");
}

TEST(Columns, RatesAreOfTheMedian) {
  const Record record = timed_record({0.001, 0.002, 0.004});
  EXPECT_EQ(cell(record, "algbw"), "1.049") << "2 MiB in 2 ms";
  EXPECT_EQ(cell(record, "busbw"), "1.049");
  EXPECT_EQ(cell(timed_record({0}), "algbw"), "-") << "a simulated rank alone takes no time";
}

TEST(Columns, ChosenBlocksHaveAStar) {
  Record record = record_of(4);
  EXPECT_EQ(cell(record, "K"), "4");
  record.bench_case.blocks = auto_blocks;
  EXPECT_EQ(cell(record, "K"), "4*");
  record.bench_case.workload = collective_workload(find_collective("ring_scan"), Shape{}, Direction::reverse);
  EXPECT_EQ(cell(record, "K"), "-");
  EXPECT_EQ(cell(record, "dir"), "rev");
}

TEST(Columns, ALayerTellsItsPassItsModeAndWhatWasVerified) {
  Layer layer;
  layer.share = {1 << 20, 2, 4, 6, 8, GateKind::vector};
  layer.pass = Pass::backward;
  layer.mode = Mode::exposed;
  Record record = timed_record({0.001});
  record.bench_case.workload = operator_workload(find_method("zeco"), layer, {GateDraw::layer});
  EXPECT_EQ(cell(record, "pass"), "backward");
  EXPECT_EQ(cell(record, "mode"), "exposed");
  record.verified.tokens = 1 << 20;
  record.verified.heads = {0, 3, 5};
  EXPECT_EQ(cell(record, "verified"), "1Mx3");
  EXPECT_EQ(cell(record, "hidden"), "-");
  record.standing.hidden = 0.456;
  EXPECT_EQ(cell(record, "hidden"), "46");
}

TEST(Columns, PercentilesAndTheLastRankStandBehindTheOthers) {
  Record record = timed_record({0.001, 0.002, 0.003});
  EXPECT_EQ(cell(record, "p50"), "2000");
  EXPECT_EQ(cell(record, "p99"), "3000");
  EXPECT_EQ(cell(record, "last"), "-") << "one process has all ranks";
  record.samples.rank_seconds = {{1, 1, 1}, {1, 2, 3}, {2, 1, 1}, {0, 0, 0}};
  EXPECT_EQ(cell(record, "last"), "1: 67");
  const Table table = table_of(record);
  EXPECT_EQ(table.row(record).size() - 1, table.head().find('\n'));
}

TEST(Columns, TitlesAndUnitsAreThoseOfTheSchema) {
  EXPECT_EQ(column("median_seconds").title, "median");
  EXPECT_EQ(column("median_seconds").unit, "us");
  EXPECT_EQ(column("algbw_bytes_per_second").unit, "GB/s");
  EXPECT_EQ(column("ranks").unit, "");
  EXPECT_EQ(column("hidden").unit, "%") << "a share, which the schema has without a unit";
  EXPECT_THROW(column("machine"), std::logic_error) << "no table shows it";
}

TEST(Columns, BriefTimesTakeSixCharacters) {
  const Record record = timed_record({1234.5});
  EXPECT_EQ(column("median_seconds").cell(record), "1234500000");
  EXPECT_EQ(column("median_seconds", Form::brief).cell(record), "1234s");
}

TEST(Columns, ANativeIsCalledOne) {
  Record record = record_of(2);
  EXPECT_EQ(cell(record, "run by"), "local");
  record.implementation = "mpi_exscan";
  EXPECT_EQ(cell(record, "run by"), "local native");
}

}  // namespace
