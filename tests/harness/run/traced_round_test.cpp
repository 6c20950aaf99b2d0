// SPDX-License-Identifier: Apache-2.0
#include "harness/run/traced_round.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "collectives/schedule/errors.hpp"
#include "harness/cases/collective_workload.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;

/// A testbed whose rounds are made up.
class Made : public Testbed {
 public:
  Made(const World& world, std::vector<StepTime> times) : Testbed(world.all()), times_(std::move(times)) {}
  std::string description() const override { return {}; }
  double start_skew_seconds() const override { return 0; }
  std::string prepare(Record&) override { return {}; }
  void verify(Record&) override {}
  void time(Record&, benchmark::State&) override {}
  std::vector<StepTime> run_traced(const Record&) override { return times_; }

 private:
  std::vector<StepTime> times_;
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
  Made testbed(world_, {{0, 0, 0, 1}, {0, 1, 0, 1}, {0, 2, 0, 1}, {1, 2, 0, 1}});
  EXPECT_THAT(trace_round(path_, record_, testbed), HasSubstr(path_));
  const auto trace = nlohmann::json::parse(std::ifstream(path_));
  EXPECT_EQ(trace["otherData"]["blocks"], 3);
  EXPECT_EQ(trace["otherData"]["case"], record_.question.name());
  const auto count = [&](const char* phase) {
    return std::count_if(trace["traceEvents"].begin(), trace["traceEvents"].end(),
                         [&](auto& event) { return event["ph"] == phase; });
  };
  EXPECT_EQ(count("X"), 4);
  EXPECT_EQ(count("f"), 1) << "the third of three blocks";
}

TEST_F(TracedRound, SaysWhyThereIsNone) {
  Made silent(world_, {});
  record_.question.executor = "silent";
  EXPECT_EQ(trace_round(path_, record_, silent),
            "# no trace: the executor 'silent' does not tell when its steps ran\n");
  record_.samples = {};
  EXPECT_EQ(trace_round(path_, record_, silent), "# no trace: nothing was timed\n");
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(TracedRound, DoesNothingUnasked) {
  Made testbed(world_, {});
  EXPECT_EQ(trace_round("", record_, testbed), "");
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
