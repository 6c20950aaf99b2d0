// SPDX-License-Identifier: Apache-2.0
#include "harness/run/google_benchmark.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "collectives/schedule/errors.hpp"
#include "tests/harness/run/made_run.hpp"
#include "tests/scratch_folder.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;

class GoogleBenchmark : public MadeRunTest {
 protected:
  GoogleBenchmark() { options_.rounds = 3; }
  /// Why flags are refused; empty if they are not.
  std::string refusal(const std::vector<std::string>& flags) {
    Options options = options_;
    options.benchmark_arguments = flags;
    try {
      select_cases(options);
      return {};
    } catch (const UsageError& error) {
      return error.what();
    }
  }
};

TEST_F(GoogleBenchmark, SelectsCasesByName) {
  options_.benchmark_arguments = {"--benchmark_filter=ring_scan/.*ranks:3"};
  EXPECT_TRUE(select_cases(options_));
  ASSERT_EQ(options_.cases.size(), 1u);
  EXPECT_EQ(options_.cases[0].workload->name(), "ring_scan");
  EXPECT_EQ(options_.cases[0].ranks, 3);
}

TEST_F(GoogleBenchmark, ListsNamesAndRunsNothing) {
  options_.benchmark_arguments = {"--benchmark_list_tests"};
  testing::internal::CaptureStdout();
  EXPECT_FALSE(select_cases(options_));
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              HasSubstr(options_.cases[0].name() + "/iterations:3/manual_time\n"));
}

TEST_F(GoogleBenchmark, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(refusal({"--benchmark_filter=nothing"}), HasSubstr("matches no case"));
  EXPECT_THAT(refusal({"--benchmark_nothing=1"}), HasSubstr("'--benchmark_nothing=1'"));
  EXPECT_THAT(refusal({"--benchmark_out_format=xyz"}), HasSubstr("is not one of json, csv, console"));
  EXPECT_THAT(refusal({"--benchmark_filter=" + std::string(5000, '(')}), HasSubstr("is too long"));
  EXPECT_EQ(refusal({"--benchmark_filter=ring"}), "");
}

TEST_F(GoogleBenchmark, WritesTheLastTimesOfEachCase) {
  const ScratchFolder scratch;
  const std::string path = scratch.file("times.json");
  options_.benchmark_arguments = {"--benchmark_out=" + path};
  ASSERT_TRUE(select_cases(options_));
  results_.start_launch(1);
  run_.times(0, {9, 9, 9});
  run_.skips(1, "there is no GPU");
  results_.start_launch(2);
  run_.times(0, {1e-6, 2e-6, 3e-6});
  write_benchmark_file(options_, results_);
  const auto written = nlohmann::json::parse(std::ifstream(path))["benchmarks"];
  ASSERT_EQ(written.size(), 4u);
  EXPECT_NEAR(written[0]["real_time"], 2, 1e-9);
  EXPECT_EQ(written[0]["iterations"], 3);
  EXPECT_EQ(written[1]["error_message"], "there is no GPU");
  EXPECT_EQ(written[2]["error_message"], "not measured");
}

}  // namespace
