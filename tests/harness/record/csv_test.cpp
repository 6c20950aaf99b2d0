// SPDX-License-Identifier: Apache-2.0
// Comma-separated values: what stands in a line, and which files are refused.
#include "harness/record/csv.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "collectives/schedule/errors.hpp"
#include "tests/scratch_folder.hpp"

namespace {

using namespace baton;
using Json = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::StartsWith;

class Csv : public testing::Test {
 protected:
  std::string text() const {
    std::stringstream all;
    all << std::ifstream(path_).rdbuf();
    return all.str();
  }

  /// What the refusal of the file says; empty if it is taken.
  std::string refusal_of(const std::string& content) const {
    std::ofstream(path_) << content;
    try {
      CsvFile file(path_);
    } catch (const UsageError& error) {
      return error.what();
    }
    return {};
  }

  const ScratchFolder scratch_;
  const std::string path_ = scratch_.file("records.csv");
};

TEST_F(Csv, HasTitlesOnceAndALineACase) {
  CsvFile file(path_);
  file.append(Json::parse(R"({"case":"a/b","time":"now","ci95_seconds":[1,2.5],"machine":{"cpu":"some"}})"));
  CsvFile(path_).append(Json::parse(R"({"case":"c","time":"later"})"));
  const std::string all = text();
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 3);
  EXPECT_THAT(all, StartsWith("schema,case,family,contest,bench,name,"));
  EXPECT_THAT(all, HasSubstr(",median_seconds,ci95_low_seconds,ci95_high_seconds,min_seconds,"));
  EXPECT_THAT(all, HasSubstr(",over_launches_median_seconds,over_launches_ci95_low_seconds,"));
  EXPECT_THAT(all, HasSubstr(",host,cpu,machine_cores,"));
  EXPECT_THAT(all, HasSubstr("\n,a/b,,"));
  EXPECT_THAT(all, HasSubstr(",1,2.5,"));
  EXPECT_THAT(all, HasSubstr(",some,"));
  std::stringstream lines(all);
  for (std::string line; std::getline(lines, line);)
    EXPECT_EQ(std::count(line.begin(), line.end(), ','),
              std::count(all.begin(), all.begin() + all.find('\n'), ','));
}

TEST_F(Csv, TextWithSeparatorsIsQuoted) {
  CsvFile(path_).append(Json::parse(R"({"time":"t","skipped":"needs 2 ranks, has \"one\""})"));
  EXPECT_THAT(text(), HasSubstr(R"(,"needs 2 ranks, has ""one""",)"));
}

TEST_F(Csv, NumbersThatAreUnknownAreEmpty) {
  CsvFile(path_).append(Json::parse(R"({"commit":"c","time":"t","run":null,"launch":1})"));
  EXPECT_THAT(text(), HasSubstr(",c,t,,,1,"));
}

TEST_F(Csv, RefusesWhatItWouldSpoil) {
  EXPECT_EQ(refusal_of(""), "");
  EXPECT_THAT(refusal_of("size,time\n1,2\n"), HasSubstr("other titles"));
  std::filesystem::remove(path_);
  CsvFile(path_).append(Json::parse(R"({"time":"t"})"));
  const std::string whole = text();
  EXPECT_EQ(refusal_of(whole), "");
  EXPECT_THAT(refusal_of(whole.substr(0, whole.size() - 1)), HasSubstr("not whole"));
  EXPECT_EQ(text(), whole.substr(0, whole.size() - 1)) << "a refused file stays as it was";
}

TEST_F(Csv, NoPathIsNoFile) { CsvFile("").append(Json::object()); }

}  // namespace
