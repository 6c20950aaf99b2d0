// SPDX-License-Identifier: Apache-2.0
#include "harness/report/record.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "collectives/schedule/errors.hpp"
#include "harness/cases/collective_workload.hpp"

namespace {

using namespace baton;

Record timed_record() {
  Record record;
  record.question = {
      .workload = collective_workload(find_collective("all_scan"), Shape{}, Direction::forward),
      .executor = "local",
      .ranks = 4,
      .blocks = auto_blocks};
  record.blocks = 8;
  record.rounds = 3;
  record.traffic = Claim{2 << 20, 3};
  record.link = {.alpha_seconds = 1e-6, .beta = 1e9};
  record.samples = {.first_seconds = 9, .seconds = {1, 2, 3}, .rank_seconds = {{1, 2, 3}}};
  record.summary = summarise(record.samples.seconds);
  return record;
}

TEST(Record, HasEveryPromisedKey) {
  const auto json = to_json(timed_record(), {.machine = {{"cpu", "some"}}, .commit = "abc", .run = "r"});
  for (const char* key :
       {"schema",       "bench",      "name",    "implementation", "executor",     "ranks",
        "ranks_a_node", "seed",       "run",     "blocks_asked",   "direction",    "heads",
        "d_k",          "d_v",        "tokens",  "state_bytes",    "blocks",       "cadence",
        "warmup",       "rounds",     "seconds", "rank_seconds",   "mean_seconds", "median_seconds",
        "ci95_seconds", "sent_bytes", "hops",    "bound_seconds",  "wrong",        "machine",
        "commit",       "time"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_FALSE(json.contains("skipped"));
  EXPECT_EQ(json["blocks"], 8);
  EXPECT_EQ(json["blocks_asked"], "auto");
  EXPECT_DOUBLE_EQ(json["bound_seconds"], 3e-6 + (2 << 20) / 1e9);
}

TEST(Record, TellsWhatTheDevicesWereAndShowed) {
  Record record = timed_record();
  EXPECT_FALSE(to_json(record, {}).contains("device"));
  record.link.floor_seconds = 4e-6;
  record.device_facts = {{"gpu", "some"}};
  record.samples.reading_names = {"sm_clock_mhz"};
  record.samples.readings_before = {{100}, {200}};
  record.samples.readings_after = {{300}, {400}};
  const auto json = to_json(record, {});
  EXPECT_EQ(json["floor_seconds"], 4e-6);
  EXPECT_EQ(json["device"]["gpu"], "some");
  EXPECT_EQ(json["device_before"]["sm_clock_mhz"], (std::vector<double>{100, 200}));
  EXPECT_EQ(json["device_after"]["sm_clock_mhz"], (std::vector<double>{300, 400}));
}

TEST(Record, TellsMessagesWhereTheyWereCounted) {
  Record record = timed_record();
  EXPECT_TRUE(to_json(record, {})["messages"].is_null());
  record.messages = 24;
  EXPECT_EQ(to_json(record, {})["messages"], 24);
}

TEST(Record, SaysWhatWasVerifiedInItsPlace) {
  Record record = timed_record();
  EXPECT_TRUE(record.verification().empty());
  record.stand_in = record.question;
  record.stand_in->workload = record.question.workload->reduced();
  record.stand_in->ranks = 2;
  record.stand_in->blocks = 5;
  const auto json = to_json(record, {});
  EXPECT_EQ(json["verified_ranks"], 2);
  EXPECT_EQ(json["verified_blocks"], 5);
  nlohmann::ordered_json small;
  record.stand_in->workload->describe(small);
  for (const std::string size : {"heads", "d_k", "d_v", "tokens"})
    EXPECT_EQ(json["verified_" + size], small[size]) << size;
  EXPECT_EQ(json["ranks"], 4) << "the question is still the question";
  EXPECT_NE(json["heads"], json["verified_heads"]);
}

TEST(Record, ASkippedCaseHasAReasonAndNoTimings) {
  Record record = timed_record();
  record.samples = {};
  record.skipped = "no such machine";
  const auto json = to_json(record, {});
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
  EXPECT_EQ(exchange->payload_bytes(4), 3 * 4 * 16 * 2 * (4 + 8));
}

TEST(Record, ARankAloneHasNoBound) {
  Record record = timed_record();
  record.question.ranks = 1;
  EXPECT_FALSE(record.bound_seconds());
}

TEST(Journal, AppendsAndNeverOverwrites) {
  const auto path = std::filesystem::temp_directory_path() / "baton_journal_test.jsonl";
  std::filesystem::remove(path);
  Journal(path).append({{"line", 1}});
  Journal(path).append({{"line", 2}});
  std::ifstream file(path);
  std::string first, second;
  std::getline(file, first);
  std::getline(file, second);
  EXPECT_EQ(first, "{\"line\":1}");
  EXPECT_EQ(second, "{\"line\":2}");
  std::filesystem::remove(path);
}

TEST(Journal, RefusesDirectoriesAndPlacesThatCannotBeWritten) {
  EXPECT_THROW(Journal{std::filesystem::temp_directory_path()}, UsageError);
  EXPECT_THROW(Journal{"/no/such/folder/file.jsonl"}, UsageError);
}

}  // namespace
