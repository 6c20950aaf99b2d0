// SPDX-License-Identifier: Apache-2.0
#include "harness/record/record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/cases/collective_workload.hpp"
#include "harness/cases/matrices.hpp"
#include "tests/harness/record/made_record.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Record, TellsMatricesFromStatesAndBoundsTheirProducts) {
  Record record = timed_record();
  EXPECT_FALSE(to_json(record).contains("sent_matrix_bytes"));
  record.matrices = MatrixCost{.sent_bytes = 1 << 19, .product_flops = 5e9};
  const auto unmeasured = to_json(record);
  EXPECT_EQ(unmeasured["sent_matrix_bytes"], 1 << 19);
  EXPECT_EQ(unmeasured["sent_state_bytes"], record.cost->sent_bytes - (1 << 19));
  EXPECT_FALSE(unmeasured.contains("product_flops_per_second"));
  EXPECT_DOUBLE_EQ(unmeasured["bound_seconds"], 3e-6 + (2 << 20) / 1e9);
  record.alpha_beta.product_flops_per_second = 1e12;
  EXPECT_DOUBLE_EQ(to_json(record)["bound_seconds"], 3e-6 + 5e-3);
}

TEST(Record, TellsWhatWasMeasured) {
  const auto json = to_json(timed_record(), {.machine = {.cpu = "some"}, .commit = "abc", .run = "r"});
  EXPECT_FALSE(json.contains("skipped"));
  EXPECT_EQ(json["blocks"], 8);
  EXPECT_EQ(json["blocks_asked"], "auto");
  EXPECT_EQ(json["machine"]["cpu"], "some");
  EXPECT_DOUBLE_EQ(json["bound_seconds"], 3e-6 + (2 << 20) / 1e9);
}

TEST(Record, HasNoCharacterThatReadersRefuse) {
  Record record = timed_record();
  record.stands_on = "a \x1b[31mmachine";
  record.device_facts = {{"gpu", "of\xc2\x85 two\rlines"}};
  const Machine odd{.cpu = "\u2028cpu\xff",
                    .environment = {{"OMP_X", "a\tb"}, {"OMP_\n", "c"}},
                    .settings = {{"btl", "\u202eself"}}};
  const auto json = to_json(record, {.machine = odd, .commit = "abc", .run = "r", .session = "s\u2066"});
  EXPECT_EQ(json["machine"]["environment"]["OMP_X"], "a\\tb");
  EXPECT_EQ(json["machine"]["environment"]["OMP_\\n"], "c");
  EXPECT_EQ(json["machine"]["settings"]["btl"], "\\xe2\\x80\\xaeself");
  EXPECT_EQ(printable(json.dump()), json.dump());
}

TEST(Record, ItsCaseHasNoCycleAndTheBlocksThatWereAsked) {
  Record record = timed_record();
  const std::string key = to_json(record)["case"];
  EXPECT_EQ(key, record.bench_case.name());
  EXPECT_TRUE(key.ends_with("/blocks:auto")) << key;
  record.bench_case.cycle = 3;
  record.blocks = 16;
  EXPECT_EQ(to_json(record)["case"], key);
}

TEST(Record, NamesItsFamilyAndItsContest) {
  Record record = timed_record();
  record.warmup = 2;
  const std::string contest = to_json(record)["contest"];
  EXPECT_EQ(to_json(record)["family"], "local");
  EXPECT_EQ(contest, record.bench_case.contest() + "/warmup:2/rounds:3");
  record.bench_case.cycle = 3;
  EXPECT_EQ(to_json(record)["contest"], contest);
  record.bench_case.executor = "simulator";
  EXPECT_EQ(to_json(record)["contest"], record.bench_case.contest()) << "it has one round, whatever is asked";
}

TEST(Record, TellsHowOftenEachRankWasLast) {
  Record record = timed_record();
  EXPECT_FALSE(to_json(record).contains("rounds_as_last")) << "one process has all ranks";
  record.samples.rank_seconds = {{1, 2, 3}, {1, 3, 3}, {0, 0, 4}, {0, 0, 0}};
  EXPECT_EQ(to_json(record)["rounds_as_last"], (std::vector<int>{1, 1, 1, 0})) << "the first of equals";
}

TEST(Record, TellsWhatTheDevicesWereAndShowed) {
  Record record = timed_record();
  EXPECT_FALSE(to_json(record).contains("device"));
  record.alpha_beta.floor_seconds = 4e-6;
  record.device_facts = {{"gpu", "some"}};
  record.samples.reading_names = {"sm_clock_mhz"};
  record.samples.readings_before = {{100}, {200}};
  record.samples.readings_after = {{300}, {400}};
  const auto json = to_json(record);
  EXPECT_EQ(json["floor_seconds"], 4e-6);
  EXPECT_EQ(json["device"]["gpu"], "some");
  EXPECT_EQ(json["device_before"]["sm_clock_mhz"], (std::vector<double>{100, 200}));
  EXPECT_EQ(json["device_after"]["sm_clock_mhz"], (std::vector<double>{300, 400}));
}

TEST(Record, RanksThatShareAGpuHaveNoBound) {
  Record record = timed_record();
  EXPECT_FALSE(to_json(record).contains("ranks_per_gpu"));
  record.bench_case.ranks_per_gpu = 2;
  const auto json = to_json(record);
  EXPECT_EQ(json["ranks_per_gpu"], 2);
  EXPECT_TRUE(json["bound_seconds"].is_null());
}

TEST(Record, TellsTheMemoryOfItsBuffersUnlessANativeHasItsOwn) {
  Record record = timed_record();
  EXPECT_TRUE(to_json(record)["tensor_bytes"].is_null());
  EXPECT_TRUE(to_json(record)["scratch_bytes"].is_null());
  record.footprint = Footprint{100, 20};
  EXPECT_EQ(to_json(record)["tensor_bytes"], 100);
  EXPECT_EQ(to_json(record)["scratch_bytes"], 20);
}

TEST(Record, TellsMessagesWhereTheyWereCounted) {
  Record record = timed_record();
  EXPECT_TRUE(to_json(record)["messages"].is_null());
  record.messages = 24;
  EXPECT_EQ(to_json(record)["messages"], 24);
}

TEST(Record, SaysWhatWasVerifiedInItsPlace) {
  Record record = timed_record();
  EXPECT_FALSE(to_json(record).contains("verified_tokens"));
  record.verified.verified_case = record.bench_case;
  record.verified.verified_case->workload = record.bench_case.workload->reduced(2);
  record.verified.verified_case->ranks = 2;
  record.verified.verified_case->blocks = 5;
  const auto json = to_json(record);
  EXPECT_EQ(json["verified_ranks"], 2);
  EXPECT_EQ(json["verified_blocks"], 5);
  const AxisValues small = record.verified.verified_case->workload->axes();
  EXPECT_EQ(json["verified_heads"], small.whole("heads"));
  EXPECT_EQ(json["verified_d_k"], small.whole("d_k"));
  EXPECT_EQ(json["verified_d_v"], small.whole("d_v"));
  EXPECT_EQ(json["verified_tokens"], small.whole("tokens"));
  EXPECT_EQ(json["ranks"], 4) << "the record is still that of its own case";
  EXPECT_NE(json["heads"], json["verified_heads"]);
}

TEST(Record, SaysWhatWasCompared) {
  Record record = timed_record();
  record.verified.elements = 12;
  record.verified.seconds = 0.5;
  record.timed_seconds = 2;
  const auto json = to_json(record);
  EXPECT_EQ(json["verified_elements"], 12);
  EXPECT_EQ(json["verification_seconds"], 0.5);
  EXPECT_EQ(json["timed_seconds"], 2);
  record.bench_case.workload = operator_workload(find_method("zeco"), small_layer(), {GateDraw::mixed});
  record.verified.tokens = 20;
  record.verified.heads = {1, 3};
  EXPECT_EQ(to_json(record)["verified_tokens"], 20);
  EXPECT_EQ(to_json(record)["verified_heads"], 2);
  EXPECT_EQ(to_json(record)["verified_head_numbers"], (std::vector<int>{1, 3}));
}

TEST(Record, ASkippedCaseHasAReasonAndNoTimings) {
  Record record = timed_record();
  record.samples = {};
  record.skipped = "no such machine";
  const auto json = to_json(record);
  EXPECT_EQ(json["skipped"], "no such machine");
  for (const char* key : {"seconds", "mean_seconds", "median_seconds"})
    EXPECT_FALSE(json.contains(key)) << key;
}

TEST(Record, BandwidthsFollowTheKind) {
  const Shape shape{.heads = 2, .d_k = 4, .d_v = 8, .tokens = 16};
  const auto scan = collective_workload(find_collective("all_scan"), shape, Direction::forward);
  const auto gather = collective_workload(find_collective("ring_all_gather"), shape, Direction::forward);
  const auto exchange = collective_workload(find_collective("ring_exchange"), shape, Direction::forward);
  EXPECT_EQ(scan->payload_bytes(4), 4 * 2 * 4 * 8);
  EXPECT_EQ(scan->port_bytes(4), scan->payload_bytes(4));
  EXPECT_EQ(scan->port_bytes(1), 0);
  EXPECT_EQ(gather->payload_bytes(4), 4 * 4 * 2 * 4 * (8 + 1));
  EXPECT_EQ(gather->port_bytes(4), gather->payload_bytes(4) * 3 / 4);
  const auto sums = collective_workload(find_collective("ring_reduce_scatter"), shape, Direction::forward);
  EXPECT_EQ(sums->payload_bytes(4), gather->payload_bytes(4));
  EXPECT_EQ(sums->port_bytes(4), gather->port_bytes(4));
  EXPECT_EQ(exchange->payload_bytes(4), 3 * 4 * 16 * 2 * (4 + 8));
  const auto all_to_all =
      collective_workload(find_collective("direct_all_to_all"), shape, Direction::forward);
  EXPECT_EQ(all_to_all->payload_bytes(4), 4 * 16 * 2 * (4 + 8));
  EXPECT_EQ(all_to_all->port_bytes(4), 4 * 16 * 2 * (4 + 8) * 3 / 4);
  EXPECT_EQ(all_to_all->payload_bytes(5), 4 * 5 * 77) << "each of 5 blocks is rounded up";
  const auto to_zigzag = collective_workload(find_collective("direct_to_zigzag"), shape, Direction::forward);
  EXPECT_EQ(to_zigzag->payload_bytes(4), 4 * 16 * 2 * 4);
  EXPECT_EQ(to_zigzag->port_bytes(4), 4 * 16 * 2 * 4);
  EXPECT_EQ(to_zigzag->port_bytes(2), 4 * 16 * 4) << "each of two ranks keeps a piece";
}

TEST(Record, ARankAloneHasNoBound) {
  Record record = timed_record();
  record.bench_case.ranks = 1;
  EXPECT_FALSE(record.bound_seconds());
}

/// A row of one launch that takes 1 to 1.1 s, with this bound.
Record bounded(double bound_seconds, const char* executor = "local") {
  Record record;
  record.bench_case = {
      .workload = collective_workload(find_collective("all_scan"), Shape{1, 4, 4, 2}, Direction::forward),
      .executor = executor,
      .ranks = 2};
  record.cost = Cost{};
  record.known_bound_seconds = bound_seconds;
  record.samples.seconds = {1, 1.05, 1.1};
  record.summary = summarise(record.samples.seconds);
  return record;
}

/// The same over launches whose bounds are these shares of their times.
Record launched(const std::vector<double>& shares) {
  Record record = bounded(geometric_mean(shares) * 1.05);
  record.over_launches = OverLaunches{static_cast<int>(shares.size()), record.summary, {}};
  record.bound_share = over_launches(shares);
  return record;
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
  Record crowded = bounded(1.5);
  crowded.conditions = Conditions{.cores = 1, .busy_threads = 2};
  EXPECT_THAT(crowded.why_impossible(), IsEmpty());
  Record skipped = bounded(1.5);
  skipped.samples.seconds.clear();
  EXPECT_THAT(skipped.why_impossible(), IsEmpty());
}

}  // namespace
