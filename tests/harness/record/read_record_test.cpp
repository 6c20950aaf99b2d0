// SPDX-License-Identifier: Apache-2.0
#include "harness/record/read_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/cases/collective_workload.hpp"
#include "harness/record/json.hpp"
#include "harness/record/table.hpp"

namespace {

using namespace baton;

Record made_record() {
  Record record;
  record.bench_case = {
      .workload = collective_workload(find_collective("all_scan"), Shape{}, Direction::forward),
      .executor = "local",
      .ranks = 3,
      .blocks = auto_blocks};
  record.implementation = "a native";
  record.blocks = 7;
  record.warmup = 2;
  record.rounds = 3;
  record.cost = Cost{2 << 20, 3};
  record.footprint = Footprint{3 << 20, 1 << 20};
  record.alpha_beta = {.alpha_seconds = 1e-6, .beta = 1e10};
  record.verified.elements = 4096;
  record.verified.relative_error = 1e-3;
  record.verified.tolerance = 1e-2;
  record.wire = Dtype::bf16;
  record.samples = {
      .first_seconds = 3e-3, .seconds = {1e-3, 2e-3, 4e-3}, .rank_seconds = {{1, 2}, {2, 1}, {2, 2}}};
  record.summary = summarise(record.samples.seconds);
  record.predicted_seconds = 5e-4;
  record.stands_on = "another machine, some day";
  record.extrapolated = "for a reason";
  record.conditions =
      Conditions{.cores = 2, .busy_threads = 3, .other_load = 0.5, .quota = 1.5, .throttled = 35};
  return record;
}

Record again(const Record& record) {
  Record read = read_record(nlohmann::json::parse(line_of(row_json(record))));
  read.bench_case = record.bench_case;
  return read;
}

TEST(ReadRecord, MakesTheSameRows) {
  const Record record = made_record();
  const Table all = wide_table(record.bench_case, 23, 1), fitted = fitted_table({record.bench_case}, 1);
  EXPECT_EQ(all.row(again(record)), all.row(record));
  EXPECT_EQ(fitted.row(again(record)), fitted.row(record));
}

TEST(ReadRecord, TheMadeRowSaysSomethingInEveryColumnThatIsRead) {
  const Record record = made_record();
  Record bare;
  bare.bench_case = record.bench_case;
  for (const Column& column : wide_table(record.bench_case, 23, 1).answer)
    if (column.title != "ratio" && column.title != "ratio to" &&
        column.title != "wrong")  // of other rows; and none is wrong
      EXPECT_NE(column.cell(record), column.cell(bare)) << column.title;
}

TEST(ReadRecord, OfCasesWithoutTimesToo) {
  Record failed = made_record(), skipped = made_record(), wrong = made_record();
  failed.samples = skipped.samples = wrong.samples = {};
  failed.failure = Failure{.reason = "rank 1 died", .rank = 1, .step = {}, .exit_code = 3, .seconds = 1};
  skipped.skipped = "for a reason";
  wrong.verified.wrong = 3;
  wrong.verified.first_wrong = "element 5 of rank 1";
  for (const Record& record : {failed, skipped, wrong}) {
    const Table all = wide_table(record.bench_case, 23, 1);
    EXPECT_EQ(all.row(again(record)), all.row(record));
    EXPECT_FALSE(again(record).is_timed());
  }
  EXPECT_EQ(again(failed).failure->rank, 1);
  EXPECT_EQ(again(failed).failure->step, std::nullopt);
  EXPECT_EQ(again(failed).failure->exit_code, 3);
}

TEST(ReadRecord, ABoundOfSimulatedLinksStays) {
  Record record = made_record();
  EXPECT_DOUBLE_EQ(*again(record).bound_seconds(), *record.bound_seconds());
  record.known_bound_seconds = 1.25e-4;
  EXPECT_DOUBLE_EQ(*record.bound_seconds(), 1.25e-4);
  EXPECT_DOUBLE_EQ(*again(record).bound_seconds(), 1.25e-4);
}

TEST(ReadRecord, TheMemoryIsThatOfTheRecord) {
  EXPECT_EQ(again(made_record()).footprint, (Footprint{3 << 20, 1 << 20}));
  EXPECT_FALSE(read_record(nlohmann::json::object()).footprint) << "as of older records";
}

TEST(ReadRecord, OfAnotherProgramIsRefused) {
  EXPECT_THROW(read_record(nlohmann::json{{"blocks", "many"}}), nlohmann::json::exception);
}

}  // namespace
