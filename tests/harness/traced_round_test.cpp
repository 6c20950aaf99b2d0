// SPDX-License-Identifier: Apache-2.0
#include "harness/traced_round.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "collectives/schedule/errors.hpp"
#include "harness/collective_workload.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;

/// An executor with nothing to tell: one that does not override run_traced.
class Silent : public Executor {
 public:
  std::vector<int> local_ranks() const override { return {0, 1}; }
  std::string supports(std::span<const Schedule>) const override { return {}; }
  void prepare(std::vector<Schedule>) override {}
  void write(int, const Slice&, std::span<const float>) override {}
  void read(std::span<float>, int, const Slice&) const override {}
  void synchronise() override {}
  double run() override { return 1; }
  double one_way_seconds(std::int64_t, int, int) override { return 1; }
};

class TracedRound : public testing::Test {
 protected:
  TracedRound() {
    record_.question = {
        .workload = collective_workload(find_collective("all_scan"), Shape{1, 4, 4, 2}, Direction::forward),
        .executor = "local",
        .ranks = 2,
        .blocks = auto_blocks};
    record_.blocks = 3;
    record_.samples = {.first_seconds = 1, .seconds = {1}, .rank_seconds = {{1}}};
  }
  ~TracedRound() override { std::filesystem::remove(path_); }

  std::string path_ = testing::TempDir() + "traced_round_test.json";
  Record record_;
  int argc_ = 0;
  char** argv_ = nullptr;
  World world_{&argc_, &argv_};
};

TEST_F(TracedRound, WritesTheBlocksThatRan) {
  const auto executor = find_executor("local").make(2);
  executor->prepare(record_.question.workload->build(record_.question.split(3)));
  EXPECT_THAT(trace_round(path_, record_, *executor, world_.all()), HasSubstr(path_));
  const auto trace = nlohmann::json::parse(std::ifstream(path_));
  EXPECT_EQ(trace["otherData"]["blocks"], 3);
  EXPECT_EQ(trace["otherData"]["case"], record_.question.name());
  const auto& events = trace["traceEvents"];
  EXPECT_EQ(std::count_if(events.begin(), events.end(), [](auto& event) { return event["ph"] == "X"; }), 6);
}

TEST_F(TracedRound, SaysWhyThereIsNone) {
  Silent silent;
  record_.question.executor = "silent";
  EXPECT_EQ(trace_round(path_, record_, silent, world_.all()),
            "# no trace: the executor 'silent' does not tell when its steps ran\n");
  record_.samples = {};
  EXPECT_EQ(trace_round(path_, record_, silent, world_.all()), "# no trace: nothing was timed\n");
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(TracedRound, DoesNothingUnasked) {
  Silent silent;
  EXPECT_EQ(trace_round("", record_, silent, world_.all()), "");
}

TEST_F(TracedRound, IsRefusedWhereItCannotBe) {
  Options options;
  options.cases.assign(2, record_.question);
  EXPECT_NO_THROW(try_trace(options));
  options.trace = path_;
  EXPECT_THROW(try_trace(options), UsageError);
  options.cases.pop_back();
  EXPECT_NO_THROW(try_trace(options));
  EXPECT_FALSE(std::filesystem::exists(path_)) << "a trial leaves nothing behind";
  for (const std::string& nowhere : {testing::TempDir(), testing::TempDir() + "none/x.json"}) {
    options.trace = nowhere;
    EXPECT_THROW(try_trace(options), UsageError) << nowhere;
  }
}

TEST_F(TracedRound, ATrialLeavesAnOldTraceAlone) {
  std::ofstream(path_) << "old";
  Options options;
  options.cases.push_back(record_.question);
  options.trace = path_;
  try_trace(options);
  std::string left;
  std::ifstream(path_) >> left;
  EXPECT_EQ(left, "old");
}

}  // namespace
