// SPDX-License-Identifier: Apache-2.0
#include "harness/run/rows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/run/made_run.hpp"

namespace {

using namespace baton;
using testing::ElementsAre;

std::vector<std::string> names(const std::vector<Row>& rows) {
  std::vector<std::string> all;
  for (const Row& row : rows) {
    const std::string variant = row.bench_case.workload->variant_name();
    all.push_back(row.bench_case.workload->name() + (variant.empty() ? "" : " " + variant));
  }
  return all;
}

class Contests : public MadeRunTest {
 protected:
  std::vector<Row> rows(int contest) {
    return ranked_rows(contests_of(options_.cases)[contest], options_.cases, results_, comparisons_);
  }
};

TEST_F(Contests, DifferInTheAlgorithmAlone) {
  EXPECT_THAT(contests_of(options_.cases), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
}

TEST_F(Contests, TheFastestIsAtTheTop) {
  results_.start_launch(1);
  run_.times(0, {4, 4, 4});
  run_.times(1, {1, 2, 3});
  EXPECT_THAT(names(rows(0)), ElementsAre("ring_scan", "all_scan"));
  EXPECT_TRUE(rows(0)[0].is_fastest);
  EXPECT_FALSE(rows(0)[1].is_fastest);
  EXPECT_DOUBLE_EQ(rows(0)[1].to_fastest->value, 2);
  EXPECT_LE(rows(0)[1].to_fastest->ci95[0], 2) << "of the rounds of the only launch";
  EXPECT_TRUE(rows(1).empty()) << "it has not begun";
}

TEST_F(Contests, RatiosAreFormedLaunchByLaunch) {
  for (const int launch : {1, 2}) {
    results_.start_launch(launch);
    run_.times(0, {launch == 1 ? 2.0 : 8.0});
    run_.times(1, {launch == 1 ? 1.0 : 2.0});
  }
  const auto ranked = rows(0);
  EXPECT_EQ(ranked[1].launches, 2);
  EXPECT_DOUBLE_EQ(ranked[1].median(), 4);
  EXPECT_NEAR(ranked[1].to_fastest->value, std::sqrt(2.0 * 4.0), 1e-12);
}

TEST_F(Contests, TheBoundIsOfAllLaunchesAsTheTimeIs) {
  for (const int launch : {1, 2}) {
    results_.start_launch(launch);
    run_.times(0, {1}, launch == 1 ? 0.2 : 0.8);
    if (launch == 1) {
      EXPECT_FALSE(rows(0)[0].bound_share);
    }
  }
  EXPECT_NEAR(rows(0)[0].result.real("bound_seconds"), 0.4, 1e-12);
  EXPECT_NEAR(rows(0)[0].bound_share->value, 0.4, 1e-12);
}

TEST_F(Contests, RowsWithoutTimesComeLast) {
  results_.start_launch(1);
  run_.skips(0, "for a reason");
  run_.times(1, {3});
  run_.fails(2, "rank 1 died");
  run_.times(3, {3});
  EXPECT_THAT(names(rows(0)), ElementsAre("ring_scan", "all_scan"));
  EXPECT_THAT(names(rows(1)), ElementsAre("ring_scan", "all_scan"));
  EXPECT_EQ(rows(1)[1].result.reason(), "rank 1 died");
  EXPECT_FALSE(rows(1)[1].to_fastest);
}

TEST_F(Contests, ACaseThatFailsLaterLosesItsTime) {
  results_.start_launch(1);
  run_.times(0, {1});
  run_.times(1, {2});
  results_.start_launch(2);
  run_.fails(0, "rank 1 died");
  EXPECT_THAT(names(rows(0)), ElementsAre("ring_scan", "all_scan"));
  EXPECT_TRUE(rows(0)[0].is_fastest);
}

TEST(Layers, CompeteAsTheyWerePublished) {
  Options options;
  for (const Mode mode : {Mode::compute_only, Mode::exposed, Mode::overlapped})
    for (const char* method : {"zeco", "lasp2"}) {
      Layer layer;
      layer.share = {64, 2, 4, 6, 8, GateKind::vector};
      layer.mode = mode;
      options.cases.push_back({.workload = operator_workload(find_method(method), layer, {GateDraw::layer}),
                               .backend = &find_backend("local"),
                               .ranks = 2});
    }
  ASSERT_EQ(contests_of(options.cases).size(), 1u);
  Results results;
  Comparisons comparisons(options.cases, "");
  results.start_launch(1);
  for (int index = 0; index < 6; ++index) MadeRun{options, results, comparisons}.times(index, {1.0 + index});
  const auto rows = ranked_rows(contests_of(options.cases)[0], options.cases, results, comparisons);
  EXPECT_THAT(names(rows), ElementsAre("zeco overlapped", "lasp2 overlapped", "zeco exposed", "lasp2 exposed",
                                       "zeco compute_only", "lasp2 compute_only"));
  EXPECT_TRUE(rows[0].is_fastest) << "whatever less work takes";
  EXPECT_LT(rows[4].to_fastest->value, 1);
}

}  // namespace
