// SPDX-License-Identifier: Apache-2.0
#include "harness/record/facts.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/harness/record/made_case.hpp"

namespace {

using namespace baton;
using Json = Result::Json;

TEST(Facts, TellsMatricesFromStatesAndBoundsTheirProducts) {
  MadeCase made;
  EXPECT_FALSE(made.json().contains("sent_matrix_bytes"));
  made.traffic.matrices = MatrixCost{.sent_bytes = 1 << 19, .product_flops = 5e9};
  const Json unmeasured = made.json();
  EXPECT_EQ(unmeasured["sent_matrix_bytes"], 1 << 19);
  EXPECT_EQ(unmeasured["sent_state_bytes"], made.traffic.cost->sent_bytes - (1 << 19));
  EXPECT_FALSE(unmeasured.contains("product_flops_per_second"));
  EXPECT_DOUBLE_EQ(unmeasured["bound_seconds"], 3e-6 + (2 << 20) / 1e9);
  made.traffic.link.product_flops_per_second = 1e12;
  EXPECT_DOUBLE_EQ(made.json()["bound_seconds"], 3e-6 + 5e-3);
}

TEST(Facts, NamesItsFamilyAndItsContest) {
  MadeCase made;
  made.warmup = 2;
  const std::string contest = made.json()["contest"];
  EXPECT_EQ(made.json()["family"], "local");
  EXPECT_EQ(contest, made.bench_case.contest() + "/warmup:2/rounds:3");
  made.bench_case.cycle = 3;
  EXPECT_EQ(made.json()["contest"], contest);
  made.bench_case.backend = &find_backend("simulator");
  EXPECT_EQ(made.json()["contest"], made.bench_case.contest()) << "it has one round, whatever is asked";
}

TEST(Facts, TellsHowOftenEachRankWasLast) {
  MadeCase made;
  EXPECT_FALSE(made.json().contains("rounds_as_last")) << "one process has all ranks";
  made.samples.rank_seconds = {{1, 2, 3}, {1, 3, 3}, {0, 0, 4}, {0, 0, 0}};
  EXPECT_EQ(made.json()["rounds_as_last"], (std::vector<int>{1, 1, 1, 0})) << "the first of equals";
}

TEST(Facts, RanksThatShareAGpuHaveNoBound) {
  MadeCase made;
  EXPECT_FALSE(made.json().contains("ranks_per_gpu"));
  made.bench_case.ranks_per_gpu = 2;
  const Json json = made.json();
  EXPECT_EQ(json["ranks_per_gpu"], 2);
  EXPECT_TRUE(json["bound_seconds"].is_null());
}

TEST(Facts, TellsTheMemoryOfItsBuffersUnlessANativeHasItsOwn) {
  MadeCase made;
  EXPECT_TRUE(made.json()["tensor_bytes"].is_null());
  EXPECT_TRUE(made.json()["scratch_bytes"].is_null());
  made.traffic.footprint = Footprint{100, 20};
  EXPECT_EQ(made.json()["tensor_bytes"], 100);
  EXPECT_EQ(made.json()["scratch_bytes"], 20);
}

TEST(Facts, TellsMessagesWhereTheyWereCounted) {
  MadeCase made;
  EXPECT_TRUE(made.json()["messages"].is_null());
  made.traffic.messages = 24;
  EXPECT_EQ(made.json()["messages"], 24);
}

TEST(Facts, ACaseHasNoCycleAndTheBlocksThatWereAsked) {
  MadeCase made;
  const std::string key = made.json()["case"];
  EXPECT_EQ(key, made.bench_case.name());
  EXPECT_TRUE(key.ends_with("/blocks:auto")) << key;
  EXPECT_EQ(made.json()["blocks_asked"], "auto");
  made.bench_case.cycle = 3;
  EXPECT_EQ(made.json()["case"], key);
}

TEST(Facts, DevicesHaveTheirReadings) {
  MadeCase made;
  made.traffic.link.floor_seconds = 4e-6;
  made.samples.reading_names = {"sm_clock_mhz"};
  made.samples.readings_before = {{100}, {200}};
  made.samples.readings_after = {{300}, {400}};
  const Json json = made.json();
  EXPECT_EQ(json["floor_seconds"], 4e-6);
  EXPECT_EQ(json["device_before"]["sm_clock_mhz"], (std::vector<double>{100, 200}));
  EXPECT_EQ(json["device_after"]["sm_clock_mhz"], (std::vector<double>{300, 400}));
}

TEST(Facts, ASmallerCaseThatWasVerifiedHasItsSizes) {
  const MadeCase made;
  Result result = made.result();
  EXPECT_FALSE(result.has("verified_tokens"));
  Case smaller = made.bench_case;
  smaller.workload = smaller.workload->reduced(2);
  smaller.ranks = 2;
  smaller.blocks = 5;
  add_verified_case(result, smaller);
  EXPECT_EQ(result.whole("verified_ranks"), 2);
  EXPECT_EQ(result.whole("verified_blocks"), 5);
  const AxisValues small = smaller.workload->axes();
  EXPECT_EQ(result.whole("verified_heads"), small.whole("heads"));
  EXPECT_EQ(result.whole("verified_d_k"), small.whole("d_k"));
  EXPECT_EQ(result.whole("verified_d_v"), small.whole("d_v"));
  EXPECT_EQ(result.whole("verified_tokens"), small.whole("tokens"));
  EXPECT_EQ(result.whole("ranks"), 4) << "the result is still that of its own case";
  EXPECT_NE(result.whole("heads"), result.whole("verified_heads"));
}

TEST(Facts, SayWhatWasCompared) {
  MadeCase made;
  made.found.elements = 12;
  EXPECT_EQ(made.json()["verified_elements"], 12);
  EXPECT_EQ(made.json()["verification_seconds"], 0.5);
  made.bench_case.workload = operator_workload(find_method("zeco"), small_layer(), {GateDraw::mixed});
  made.found.tokens = 20;
  made.found.heads = {1, 3};
  EXPECT_EQ(made.json()["verified_tokens"], 20);
  EXPECT_EQ(made.json()["verified_heads"], 2);
  EXPECT_EQ(made.json()["verified_head_numbers"], (std::vector<int>{1, 3}));
}

TEST(Facts, OfAWrongCaseHaveNoTimes) {
  const Result::Json json = made_case({}).json();
  for (const char* key : {"seconds", "mean_seconds", "median_seconds"})
    EXPECT_FALSE(json.contains(key)) << key;
}

TEST(Facts, ARankAloneHasNoBound) {
  MadeCase made;
  made.bench_case.ranks = 1;
  EXPECT_FALSE(bound_seconds(made.bench_case, made.traffic));
}

TEST(Facts, RoundsBackToBackAreBoundByBytesAlone) {
  MadeCase made;
  made.bench_case.cadence = Cadence::streaming;
  EXPECT_DOUBLE_EQ(*bound_seconds(made.bench_case, made.traffic), (2 << 20) / 1e9);
}

TEST(Facts, RoundsAreShortenedForRecordsAlone) {
  Result result = made_case({1.23456789e-6}).result();
  EXPECT_EQ(result.value<std::vector<double>>("seconds"), std::vector<double>{1.23456789e-6});
  round_times(result);
  EXPECT_EQ(result.value<std::vector<double>>("seconds"), std::vector<double>{1.2346e-6});
  EXPECT_EQ(result.real("median_seconds"), 1.23456789e-6);
}

}  // namespace
