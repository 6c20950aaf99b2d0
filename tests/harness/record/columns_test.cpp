// SPDX-License-Identifier: Apache-2.0
#include "harness/record/columns.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/record/table.hpp"
#include "tests/harness/record/made_case.hpp"

namespace {

using namespace baton;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// A case of four blocks whose bound is 3 us and 2 MiB at 10 GB/s.
MadeCase of_seconds(std::vector<double> seconds) {
  MadeCase made = made_case(std::move(seconds));
  made.bench_case.blocks = 4;
  made.traffic.link.beta = 1e10;
  return made;
}

Row row_of(const MadeCase& made) {
  Row row = made.row();
  row.result.set("blocks", 4);
  return row;
}

/// The wide table of cases like that of the row.
Table table_of(const Row& row, int launches = 2) { return wide_table(row.bench_case, 23, launches); }

/// The text of the cell under `title` in that table, without its padding.
std::string cell(const Row& row, const std::string& title) {
  const Table table = table_of(row);
  for (const auto* columns : {&table.bench_case, &table.answer})
    for (const Column& column : *columns)
      if (column.title == title) return column.cell(row);
  return "no such column";
}
std::string cell(const MadeCase& made, const std::string& title) { return cell(row_of(made), title); }

TEST(Table, RowsStandUnderTheirHead) {
  const Row row = row_of(of_seconds({0.001, 0.002}));
  const std::string head = table_of(row).head(), line = table_of(row).row(row);
  const std::string last = table_of(row).answer.back().title;
  EXPECT_EQ(head.find(last + "\n") + last.size(), head.find('\n')) << "it is aligned to the right";
  EXPECT_EQ(line.size() - 1, head.find('\n'));
}

TEST(Table, ShowsTimesInMicroseconds) { EXPECT_EQ(cell(of_seconds({0.001234}), "median"), "1234"); }

TEST(Table, ShowsNoShareAndNoRatioOfATimeThatIsZero) {
  Row row = row_of(of_seconds({0, 0}));
  row.result.set("ratio", ratio_of_medians({0, 0}, {0, 0}).value);
  EXPECT_EQ(bound_share().cell(row), "-");
  EXPECT_EQ(cell(row, "ratio"), "-");
}

TEST(Table, RowsWithoutTimesSayWhatTheyWereAndWhy) {
  Row row = row_of(of_seconds({}));
  row.result.set("skipped", "a reason");
  EXPECT_THAT(table_of(row).row(row), AllOf(HasSubstr("all_scan"), HasSubstr("skipped: a reason")));
  row.result.set("failed", "rank 1 died");
  EXPECT_THAT(table_of(row).row(row), HasSubstr("failed: rank 1 died"));
  MadeCase wrong = of_seconds({});
  wrong.found = {.wrong = 3, .first = "element 5 of rank 1"};
  EXPECT_THAT(table_of(row).row(wrong.row()),
              HasSubstr("wrong: 3 wrong elements, first element 5 of rank 1"));
}

TEST(Columns, APredictionBeyondItsCalibrationIsMarked) {
  Row row = row_of(of_seconds({0.001}));
  EXPECT_EQ(cell(row, "predicted"), "-");
  row.result.set("predicted_seconds", 12.5e-6);
  EXPECT_EQ(cell(row, "predicted"), "12.50");
  row.result.set("extrapolated", "for a reason");
  EXPECT_EQ(cell(row, "predicted"), "12.50~");
  row.result.remove("predicted_seconds");  // a simulated row
  EXPECT_EQ(cell(row, "predicted"), "~");
}

TEST(Columns, TheShareOfTheBoundIsInPercent) {
  MadeCase made = of_seconds({0.001});
  const double bound = 3e-6 + (2 << 20) / 1e10;
  EXPECT_EQ(cell(made, "bound"), "212.7");
  EXPECT_EQ(cell(made, "% bound"), "21") << 100 * bound / 0.001;
  made.traffic.cost.reset();  // a native that does not tell
  for (const char* title : {"bound", "% bound", "sent", "hops"}) EXPECT_EQ(cell(made, title), "-") << title;
}

TEST(Columns, ARatioHasItsInterval) {
  Row row = row_of(of_seconds({0.001}));
  EXPECT_EQ(cell(row, "ratio"), "-");
  row.result.set("ratio", 1.234);
  row.result.set("ratio_ci95", Interval{1.1, 1.3});
  EXPECT_EQ(cell(row, "ratio"), "1.23 [1.10,1.30]");
}

TEST(Columns, OfOneLaunchSaySo) {
  EXPECT_THAT(table_of(row_of(of_seconds({0.001})), 1).head(),
              AllOf(Not(HasSubstr("95 % interval")), HasSubstr("within one launch")));
}

TEST(Columns, AnErrorIsShownWhereRoundingsAreAllowed) {
  MadeCase made = of_seconds({0.001});
  EXPECT_EQ(cell(made, "error"), "-");
  made.found = {.wrong = 2, .relative_error = 1.5e-3, .tolerance = 5e-3, .elements = 3 << 20};
  EXPECT_EQ(cell(made, "error"), "1.5e-03");
  EXPECT_EQ(cell(made, "wrong"), "2");
  EXPECT_EQ(cell(made, "verified"), "3M");
}

TEST(Columns, RatesAreOfTheMedian) {
  const MadeCase made = of_seconds({0.001, 0.002, 0.004});
  EXPECT_EQ(cell(made, "algbw"), "1.049") << "2 MiB in 2 ms";
  EXPECT_EQ(cell(made, "busbw"), "1.049");
  EXPECT_EQ(cell(of_seconds({0}), "algbw"), "-") << "a simulated rank alone takes no time";
}

TEST(Columns, ChosenBlocksHaveAStar) {
  MadeCase made = of_seconds({0.001});
  EXPECT_EQ(cell(made, "K"), "4");
  made.bench_case.blocks = auto_blocks;
  EXPECT_EQ(cell(made, "K"), "4*");
  made.bench_case.workload = collective_workload(find_collective("ring_scan"), Shape{}, Direction::reverse);
  EXPECT_EQ(cell(made, "K"), "-");
  EXPECT_EQ(cell(made, "dir"), "rev");
}

TEST(Columns, ALayerTellsItsPassItsModeAndWhatWasVerified) {
  Layer layer;
  layer.share = {1 << 20, 2, 4, 6, 8, GateKind::vector};
  layer.pass = Pass::backward;
  layer.mode = Mode::exposed;
  MadeCase made = of_seconds({0.001});
  made.bench_case.workload = operator_workload(find_method("zeco"), layer, {GateDraw::layer});
  made.found = {.tokens = 1 << 20, .heads = {0, 3, 5}};
  Row row = made.row();
  EXPECT_EQ(cell(row, "pass"), "backward");
  EXPECT_EQ(cell(row, "mode"), "exposed");
  EXPECT_EQ(cell(row, "verified"), "1Mx3");
  EXPECT_EQ(cell(row, "hidden"), "-");
  row.result.set("hidden", 0.456);
  EXPECT_EQ(cell(row, "hidden"), "46");
}

TEST(Columns, PercentilesAndTheLastRankStandBehindTheOthers) {
  MadeCase made = of_seconds({0.001, 0.002, 0.003});
  EXPECT_EQ(cell(made, "p50"), "2000");
  EXPECT_EQ(cell(made, "p99"), "3000");
  EXPECT_EQ(cell(made, "last"), "-") << "one process has all ranks";
  made.samples.rank_seconds = {{1, 1, 1}, {1, 2, 3}, {2, 1, 1}, {0, 0, 0}};
  EXPECT_EQ(cell(made, "last"), "1: 67");
  const Row row = row_of(made);
  EXPECT_EQ(table_of(row).row(row).size() - 1, table_of(row).head().find('\n'));
}

TEST(Columns, TitlesAndUnitsAreThoseOfTheSchema) {
  EXPECT_EQ(column("median_seconds").title, "median");
  EXPECT_EQ(column("median_seconds").unit, "us");
  EXPECT_EQ(column("algbw_bytes_per_second").unit, "GB/s");
  EXPECT_EQ(column("ranks").unit, "");
  EXPECT_EQ(column("hidden").unit, "%") << "a share, which the schema has without a unit";
}

TEST(Columns, BriefTimesTakeSixCharacters) {
  const Row row = row_of(of_seconds({1234.5}));
  EXPECT_EQ(column("median_seconds").cell(row), "1234500000");
  EXPECT_EQ(column("median_seconds", Form::brief).cell(row), "1234s");
}

TEST(Columns, ANativeIsCalledOne) {
  Row row = row_of(of_seconds({0.001}));
  EXPECT_EQ(cell(row, "run by"), "local");
  row.result.set("implementation", "mpi_exscan");
  EXPECT_EQ(cell(row, "run by"), "local native");
}

}  // namespace
