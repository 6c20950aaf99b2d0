// SPDX-License-Identifier: Apache-2.0
#include "harness/record/table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "harness/record/cells.hpp"
#include "tests/harness/record/made_case.hpp"

namespace {

using namespace baton;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// All collectives on some executors, whether they run them or not.
std::vector<Case> all_collectives(const std::vector<std::string>& executors) {
  std::vector<Case> all;
  for (const std::string& executor : executors)
    for (const Collective* collective : collectives())
      for (const std::int64_t heads : {1, 43, 1 << 20})
        all.push_back(
            {.workload = collective_workload(*collective, Shape{heads, 127, 128, 64}, Direction::forward),
             .backend = &find_backend(executor),
             .ranks = 16384,
             .blocks = heads == 1 ? auto_blocks : 7});
  return all;
}

std::vector<Case> all_layers(const std::vector<Mode>& modes) {
  std::vector<Case> all;
  for (const SpMethod* method : sp_methods())
    for (const Mode mode : modes) {
      Layer layer;
      layer.share = {std::int64_t{1} << 20, 2, 4, 6, 8, GateKind::vector};
      layer.mode = mode;
      all.push_back({.workload = operator_workload(*method, layer, {GateDraw::layer}),
                     .backend = &find_backend("mpi"),
                     .ranks = 4096});
    }
  return all;
}

MadeCase slow_case(const Case& bench_case) {
  MadeCase made = made_case({123.4, 234.5, 256.7});
  if (!bench_case.backend->is_measured) made.samples.seconds.resize(1);  // as it is computed
  made.bench_case = bench_case;
  made.found = {.elements = (std::int64_t{1} << 31) + 1, .tokens = 99999, .heads = {0, 1, 2, 3}};
  return made;
}

Row slow_row(const Case& bench_case) {
  Row row = slow_case(bench_case).row();
  row.result.set("blocks", 1 << 20);
  row.result.set("implementation", "a native");
  row.result.set("hidden", -12.34);
  row.to_fastest = Ratio{9876.5, {1234.5, 9999.9}};
  return row;
}

/// The longest line of a table with rows that are as wide as they come.
std::size_t longest_line(const std::vector<Case>& cases, int launches) {
  const Table table = fitted_table(cases, launches);
  std::string text = table.head();
  for (const Case& c : cases) {
    Row row = slow_row(c);
    text += table.row(row);
    row.result.set("skipped",
                   "for a reason that takes many words, more of them than there is room for in a line");
    text += table.row(row);
  }
  std::size_t longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}

TEST(FittedTable, HasAtMostAHundredColumns) {
  EXPECT_LE(longest_line(all_collectives({"mpi"}), 3), 100u);
  EXPECT_LE(longest_line(all_collectives({"local", "mpi"}), 20), 100u);
  EXPECT_LE(longest_line(all_collectives({"simulator"}), 1), 100u);
  EXPECT_LE(longest_line(all_layers({Mode::overlapped}), 3), 100u);
  EXPECT_LE(longest_line(all_layers({Mode::overlapped, Mode::exposed, Mode::compute_only}), 3), 100u);
}

TEST(WideTable, HasAColumnForEveryResultWithAWidthOfSomeBench) {
  std::string heads;
  for (const Case& one : {all_collectives({"mpi"}).front(), all_layers({Mode::overlapped}).front()})
    heads += wide_table(one, 10, 2).head();
  for (const schema::Field& field : schema::fields)
    if (field.role == schema::Role::result && field.width != 0 &&
        field.key != "exposed_seconds") {  // of models
      EXPECT_THAT(heads, HasSubstr(std::string(field.title))) << field.key;
    }
}

TEST(FittedTable, LeavesOutWhatIsTheSameInAllRows) {
  std::vector<Case> one = all_collectives({"local"});
  one.resize(1);
  EXPECT_THAT(fitted_table(one, 1).head(), Not(HasSubstr("run by")));
  EXPECT_THAT(fitted_table(one, 1).head(), Not(HasSubstr(" K ")));
  EXPECT_THAT(fitted_table(all_collectives({"local", "mpi"}), 1).head(), HasSubstr("run by"));
  EXPECT_THAT(fitted_table(all_collectives({"local"}), 1).head(), HasSubstr(" K "));
}

TEST(FittedTable, ItsTitlesAreTwoLinesHoweverShortTheNames) {
  Layer layer;
  layer.share = {64, 2, 4, 6, 8, GateKind::vector};
  const auto zeco = operator_workload(find_method("zeco"), layer, {GateDraw::layer});
  const std::string head =
      fitted_table({{.workload = zeco, .backend = &find_backend("simulator"), .ranks = 2}}, 1).head();
  EXPECT_EQ(std::count(head.begin(), head.end(), '\n'), 2) << head;
}

/// The head of a table of one collective, whose blocks and executor need no column.
std::string head_of_scans(const char* executor) {
  std::vector<Case> cases = all_collectives({executor});
  std::erase_if(cases, [](const Case& c) { return c.workload->name() != "ring_scan"; });
  return fitted_table(cases, 3).head();
}

TEST(FittedTable, NoTitleIsReadTogetherWithTheNext) {
  for (const char* executor : {"local", "simulator"}) {
    const std::string head = head_of_scans(executor);
    EXPECT_THAT(head.substr(0, head.find('\n')),
                AllOf(HasSubstr(" vs lowest "), HasSubstr(" % bound verified")));
    EXPECT_THAT(head, Not(HasSubstr("against")));
  }
}

TEST(FittedTable, WhatWasVerifiedHasAUnit) {
  EXPECT_THAT(head_of_scans("local"), HasSubstr(" elements\n"));
  EXPECT_THAT(fitted_table(all_layers({Mode::overlapped}), 1).head(), HasSubstr(" tok x heads"));
}

TEST(FittedTable, ARowNamesTheScanThatWasAskedFor) {
  Layer layer;
  layer.share = {64, 2, 4, 6, 8, GateKind::vector};
  const auto name = [&](const char* method, const char* scan) {
    layer.scan = scan;
    return operator_workload(find_method(method), layer)->title();
  };
  EXPECT_EQ(name("zeco", ""), "zeco");
  EXPECT_EQ(name("zeco", "two_shot"), "zeco (two_shot)");
  EXPECT_EQ(name("ulysses", "two_shot"), "ulysses") << "which carries no states by a scan";
  layer.shares = {ShareRule::even, 127};
  EXPECT_EQ(name("zeco", "two_shot"), "zeco (two_shot, even)");
  EXPECT_EQ(name("ulysses", ""), "ulysses (even)");
}

TEST(FittedTable, SaysWhatItsIntervalsCover) {
  const std::vector<Case> cases = all_collectives({"local"});
  EXPECT_THAT(fitted_table(cases, 1).head(), HasSubstr("in one launch"));
  EXPECT_THAT(fitted_table(cases, 3).head(), HasSubstr("over 3 launches"));
}

TEST(FittedTable, ALongNameHasALineOfItsOwn) {
  std::vector<Case> cases = all_layers({Mode::overlapped});
  const Table table{{{"name", "", -4, [](const Row& r) { return r.bench_case.workload->name(); }},
                     {"P", "", 4, [](const Row&) { return "2"; }}},
                    {},
                    true};
  EXPECT_EQ(table.row(slow_row(cases.front())), cases.front().workload->name() + "\n        2\n");
}

TEST(FittedTable, SimulatedRowsHaveOneTimeAndAMark) {
  MadeCase made = slow_case(all_collectives({"simulator"}).front());
  made.samples.seconds = {1e-6};
  const Row row = made.row();
  const Table table = fitted_table({row.bench_case}, 1);
  EXPECT_THAT(table.head(), Not(HasSubstr("median")));
  EXPECT_THAT(table.head(), Not(HasSubstr("interval")));
  EXPECT_THAT(table.row(row), StartsWith("~" + row.bench_case.workload->name() + " "));
  EXPECT_THAT(table.row(row), Not(HasSubstr("[")));
}

TEST(FittedTable, MarksRowsWithTooFewCores) {
  Row row = slow_row(all_collectives({"local"}).front());
  const Table table = fitted_table({row.bench_case}, 1);
  EXPECT_THAT(table.row(row), StartsWith(row.bench_case.workload->name()));
  add_conditions(row.result, {.cores = 2, .busy_threads = 3});
  EXPECT_THAT(table.row(row), StartsWith("!" + row.bench_case.workload->name()));
}

TEST(FittedTable, TheLeastMedianOfAContestIsCalledTheLowest) {
  Row row = slow_row(all_collectives({"local"}).front());
  const Table table = fitted_table({row.bench_case}, 1);
  EXPECT_THAT(table.row(row), HasSubstr(" 9876 [1234,10000] "));
  row.is_fastest = true;
  EXPECT_THAT(table.row(row), HasSubstr(" lowest "));
}

}  // namespace
