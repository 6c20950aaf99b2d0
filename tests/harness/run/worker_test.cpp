// SPDX-License-Identifier: Apache-2.0
#include "harness/run/worker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "collectives/schedule/errors.hpp"
#include "collectives/simulator/topology/topology.hpp"
#include "harness/cases/collective_workload.hpp"
#include "harness/cases/verify.hpp"
#include "harness/options/checks.hpp"
#include "harness/options/options.hpp"
#include "harness/process/world.hpp"
#include "harness/runners/runner.hpp"
#include "tests/scratch_folder.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;

std::shared_ptr<const Workload> small_scan() {
  return collective_workload(find_collective("all_scan"), Shape{1, 4, 4, 2}, Direction::forward);
}

/// A runner whose rounds are made up.
class Made : public CaseRunner {
 public:
  Made(const World& world, std::vector<StepTime> times) : CaseRunner(world.all()), times_(std::move(times)) {}
  Prepared prepare(const Case&) override { return {}; }
  TracedRound trace(const Prepared& prepared) override { return {prepared.schedules, times_}; }

 private:
  void verify(Prepared&) override {}
  void time(Prepared&) override {}

  std::vector<StepTime> times_;
};

class TracedRound : public testing::Test {
 protected:
  TracedRound() {
    prepared_.bench_case = {
        .workload = small_scan(), .backend = &find_backend("local"), .ranks = 2, .blocks = auto_blocks};
    prepared_.blocks = 3;
    prepared_.schedules = prepared_.bench_case.workload->build(prepared_.bench_case.split(3));
    prepared_.result.set("seconds", std::vector<double>{1});
  }

  const ScratchFolder scratch_;
  const std::string path_ = scratch_.file("trace.json");
  Prepared prepared_;
  World world_{nullptr, nullptr};
};

TEST_F(TracedRound, WritesTheBlocksThatRan) {
  Made runner(world_, {{0, 0, 0, 1}, {0, 1, 0, 1}, {0, 2, 0, 1}, {1, 2, 0, 1}});
  EXPECT_THAT(trace_round(path_, prepared_, runner), HasSubstr(path_));
  const auto trace = nlohmann::json::parse(std::ifstream(path_));
  EXPECT_EQ(trace["otherData"]["blocks"], 3);
  EXPECT_EQ(trace["otherData"]["case"], prepared_.bench_case.name());
  const auto count = [&](const char* phase) {
    return std::count_if(trace["traceEvents"].begin(), trace["traceEvents"].end(),
                         [&](auto& event) { return event["ph"] == phase; });
  };
  EXPECT_EQ(count("X"), 4);
  EXPECT_EQ(count("f"), 1) << "the third of three blocks";
}

TEST_F(TracedRound, SaysWhyThereIsNone) {
  Made silent(world_, {});
  prepared_.bench_case.backend = &find_backend("local");
  EXPECT_EQ(trace_round(path_, prepared_, silent),
            "# no trace: the executor 'local' does not tell when its steps ran\n");
  prepared_.result.remove("seconds");
  EXPECT_EQ(trace_round(path_, prepared_, silent), "# no trace: nothing was timed\n");
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(TracedRound, DoesNothingUnasked) {
  Made runner(world_, {});
  EXPECT_EQ(trace_round("", prepared_, runner), "");
}

TEST_F(TracedRound, IsRefusedWhereItCannotBe) {
  Options options;
  options.cases.assign(2, prepared_.bench_case);
  EXPECT_NO_THROW(require_outputs(options));
  options.trace = path_;
  EXPECT_THROW(require_outputs(options), UsageError);
  options.cases.pop_back();
  EXPECT_NO_THROW(require_outputs(options));
  EXPECT_FALSE(std::filesystem::exists(path_)) << "a check leaves nothing behind";
  for (const std::string& nowhere : {scratch_.path().string(), scratch_.file("none/x.json")}) {
    options.trace = nowhere;
    EXPECT_THROW(require_outputs(options), UsageError) << nowhere;
  }
}

TEST_F(TracedRound, ATrialLeavesAnOldTraceAlone) {
  std::ofstream(path_) << "old";
  Options options;
  options.cases.push_back(prepared_.bench_case);
  options.trace = path_;
  require_outputs(options);
  std::string left;
  std::ifstream(path_) >> left;
  EXPECT_EQ(left, "old");
}

/// Counts how often each rank's schedule is built; `reduced` is not counted.
class Counting : public Workload {
 public:
  std::string name() const override { return scan_->name(); }
  AxisValues axes() const override { return scan_->axes(); }
  std::int64_t state_bytes() const override { return scan_->state_bytes(); }
  std::int64_t state_rows() const override { return scan_->state_rows(); }
  Schedule build_rank(int rank, const Split& split) const override {
    ++builds;
    return scan_->build_rank(rank, split);
  }
  std::optional<Cost> claim(const Split& split) const override { return scan_->claim(split); }
  void load(Executor& executor, const std::vector<Schedule>& schedules, std::uint64_t seed,
            Oracles& oracles) const override {
    scan_->load(executor, schedules, seed, oracles);
    seeds.push_back(seed);
  }
  Comparison compare(const Executor& executor, const std::vector<Schedule>& schedules, std::uint64_t seed,
                     Oracles& oracles) const override {
    EXPECT_EQ(seed, seeds.back());
    ++comparisons;
    return scan_->compare(executor, schedules, seed, oracles);
  }
  std::shared_ptr<const Workload> reduced(int) const override { return scan_; }
  double payload_bytes(int) const override { return 1; }
  double port_bytes(int) const override { return 1; }

  mutable int builds = 0;
  mutable int comparisons = 0;
  mutable std::vector<std::uint64_t> seeds;

 private:
  std::shared_ptr<const Workload> scan_ = small_scan();
};

class OneCase : public testing::Test {
 protected:
  /// The result of a case of `workload` on two ranks of `executor`.
  Result run(const std::shared_ptr<const Workload>& workload, const std::string& executor) {
    options_.cases = {{.workload = workload, .backend = &find_backend(executor), .ranks = 2}};
    Result result;
    const auto take = [&](const Message& message) {
      if (const auto* ends = std::get_if<CaseEnds>(&message)) result = ends->result;
    };
    Worker(options_, topology_, world_, take, "").run({true, {0}});
    return result;
  }

  const ScratchFolder scratch_;
  Options options_{.warmup = 1, .rounds = 3, .checks = 2, .trace = scratch_.file("one_case.json")};
  std::optional<Topology> topology_;
  World world_{nullptr, nullptr};
};

TEST_F(OneCase, BuildsTheTimedSchedulesOnce) {
  const auto counting = std::make_shared<Counting>();
  EXPECT_EQ(run(counting, "local").value<std::vector<double>>("seconds").size(), 3u);
  EXPECT_EQ(counting->builds, 6) << "2 for all rounds, 4 for two estimates of memory";
  EXPECT_TRUE(std::filesystem::exists(options_.trace));
}

TEST_F(OneCase, IsVerifiedBeforeInAndAfterTheTimedRounds) {
  const auto counting = std::make_shared<Counting>();
  run(counting, "local");
  EXPECT_EQ(counting->seeds, (std::vector<std::uint64_t>{1, 2, 3, 1})) << "two checks, the rounds, once more";
  EXPECT_EQ(counting->comparisons, 4);
}

TEST_F(OneCase, IsSimulatedOnce) {
  topology_ = read_topology(TOPOLOGIES "/h200-4.json");
  const Result result = run(small_scan(), "simulator");
  const auto seconds = result.value<std::vector<double>>("seconds");
  ASSERT_EQ(seconds.size(), 1u);
  EXPECT_GT(seconds[0], 0);
  EXPECT_EQ(result.whole("rounds"), 1);
}

TEST_F(OneCase, SaysWhyItWasSkipped) {
  options_.trace.clear();
  const auto native =
      collective_workload(find_collective("mpi_exscan"), Shape{1, 4, 4, 2}, Direction::forward);
  const Result result = run(native, "local");
  EXPECT_THAT(result.text("skipped"), HasSubstr("mpi_exscan is no native of local"));
  EXPECT_FALSE(result.is_timed());
}

}  // namespace
