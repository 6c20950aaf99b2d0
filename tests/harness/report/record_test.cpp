// SPDX-License-Identifier: Apache-2.0
#include "harness/report/record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <utility>

#include "collectives/schedule/errors.hpp"
#include "harness/layers/workload.hpp"
#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;
using Json = nlohmann::ordered_json;

Json to_json(const Record& record, const Provenance& provenance = {}) {
  return Json::parse(json_line(record, provenance));
}

Record timed_record() {
  Record record;
  record.bench_case = {
      .workload = collective_workload(find_collective("all_scan"), Shape{}, Direction::forward),
      .executor = "local",
      .ranks = 4,
      .blocks = auto_blocks};
  record.blocks = 8;
  record.rounds = 3;
  record.cost = Cost{2 << 20, 3};
  record.alpha_beta = {.alpha_seconds = 1e-6, .beta = 1e9};
  record.samples = {.first_seconds = 9, .seconds = {1, 2, 3}, .rank_seconds = {{1, 2, 3}}};
  record.summary = summarise(record.samples.seconds);
  return record;
}

/// A record in which every optional part is present.
Record full_record() {
  Record record = timed_record();
  record.messages = 24;
  record.footprint = Footprint{100, 20};
  record.alpha_beta = {1e-6, 1e9, 4e-6, 2e-6, 1e8};
  record.device_facts = {{"gpu", "some"}};
  record.samples.rank_seconds.resize(4, {1, 2, 3});
  record.verified.elements = 7;
  record.verified.heads = {0, 1};
  record.samples.reading_names = {"throttle_reasons"};
  record.samples.readings_before = record.samples.readings_after = {{1}};
  record.topology = "some machine";
  record.stands_on = "another machine, some day";
  record.predicted_seconds = 1;
  record.extrapolated = "for a reason";
  record.over_launches = OverLaunches{3, record.summary, {}};
  return record;
}

Layer small_layer() {
  Layer layer;
  layer.share = {20, 2, 4, 6, 8, GateKind::vector};
  return layer;
}

/// The same of a simulated layer.
Record full_operator_record() {
  Record record = full_record();
  record.bench_case.workload = operator_workload(find_method("zeco"), small_layer(), GateDraw::layer);
  record.standing.hidden = 0.5;
  record.verified.verified_case = record.bench_case;
  return record;
}

/// The same of softmax blocks by cuDNN, as if it were found.
Record record_of_cudnn() {
  Layer layer = small_layer();
  layer.share.gate = GateKind::none;
  layer.dtype = Dtype::bf16;
  layer.kernels.softmax = SoftmaxBody::cudnn;
  Record record = full_operator_record();
  record.bench_case.workload =
      operator_workload(find_method("ring_attention_softmax"), layer, GateDraw::layer);
  return record;
}

std::set<std::string> written_keys() {
  std::set<std::string> keys;
  Record skipped = timed_record();
  skipped.skipped = "for a reason";
  Record failed = timed_record();
  failed.failure = Failure{.reason = "for a reason", .rank = 1, .step = 2, .exit_code = 139, .seconds = 3};
  Record wrong = timed_record();
  wrong.verified.wrong = 1;
  Record shared = timed_record();
  shared.bench_case.ranks_a_gpu = 2;
  const KernelLibrary here =
      std::exchange(cudnn_library(),
                    {.lacking = [] { return Refusal{}; }, .version = [] { return std::string("9.19.0"); }});
  for (const Record& record :
       {full_record(), full_operator_record(), record_of_cudnn(), skipped, failed, wrong, shared}) {
    const auto json = to_json(record);
    for (const auto& [key, value] : json.items()) keys.insert(key);
  }
  cudnn_library() = here;
  return keys;
}

std::string metrics_text() {
  std::ifstream file(METRICS);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The keys in the second column of the tables of docs/metrics.md, and those of its other
/// sentences.
std::set<std::string> promised_keys(const std::string& text, const std::regex& lines) {
  std::set<std::string> keys;
  const std::regex word("`([a-z][a-z0-9_]*)`");
  for (std::sregex_iterator line(text.begin(), text.end(), lines), end; line != end; ++line) {
    const std::string cell = (*line)[1];
    for (std::sregex_iterator key(cell.begin(), cell.end(), word); key != end; ++key) keys.insert((*key)[1]);
  }
  return keys;
}

TEST(Record, HasEveryPromisedKey) {
  const std::set<std::string> written = written_keys();
  const auto promised = promised_keys(metrics_text(), std::regex("\n\\|[^|\n]*\\|([^|\n]*)\\|"));
  EXPECT_GT(promised.size(), 40u) << "the pattern finds the tables";
  for (const std::string& key : promised) EXPECT_TRUE(written.contains(key)) << key;
}

TEST(Record, HasNoKeyThatIsNotExplained) {
  const auto explained = promised_keys(metrics_text(), std::regex("([^\n]+)"));
  for (const std::string& key : written_keys()) EXPECT_TRUE(explained.contains(key)) << key;
}

TEST(Record, TellsMatricesFromStatesAndBoundsTheirProducts) {
  Record record = timed_record();
  EXPECT_FALSE(to_json(record).contains("sent_matrix_bytes"));
  record.matrices = MatrixCost{.sent_bytes = 1 << 19, .product_flops = 5e9};
  const auto unmeasured = to_json(record);
  EXPECT_EQ(unmeasured["sent_matrix_bytes"], 1 << 19);
  EXPECT_EQ(unmeasured["sent_state_bytes"], record.cost->sent_bytes - (1 << 19));
  EXPECT_FALSE(unmeasured.contains("product_flops_per_second"));
  EXPECT_DOUBLE_EQ(unmeasured["bound_seconds"], 3e-6 + (2 << 20) / 1e9);
  record.alpha_beta.product_flops_a_second = 1e12;
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

TEST(Record, ItsCaseHasNoCycleAndTheBlocksThatWereAsked) {
  Record record = timed_record();
  const std::string key = to_json(record)["case"];
  EXPECT_EQ(key, record.bench_case.name());
  EXPECT_TRUE(key.ends_with("/blocks:auto")) << key;
  record.bench_case.cycle = 3;
  record.blocks = 16;
  EXPECT_EQ(to_json(record)["case"], key);
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
  record.bench_case.ranks_a_gpu = 2;
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
  const Description small = record.verified.verified_case->workload->describe();
  EXPECT_EQ(json["verified_heads"], small.heads);
  EXPECT_EQ(json["verified_d_k"], small.d_k);
  EXPECT_EQ(json["verified_d_v"], small.d_v);
  EXPECT_EQ(json["verified_tokens"], small.tokens);
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
  record.bench_case.workload = operator_workload(find_method("zeco"), small_layer(), GateDraw::mixed);
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

}  // namespace
