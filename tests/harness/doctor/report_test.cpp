// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/doctor/judges.hpp"
#include "tests/harness/doctor/made_up.hpp"

namespace baton::doctor {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::size_t widest(const std::string& text) {
  std::istringstream lines(text);
  std::size_t most = 0;
  for (std::string line; std::getline(lines, line);) most = std::max(most, line.size());
  return most;
}

/// A machine with all that can be wrong, on so many ranks.
Readings ill(int ranks) {
  Readings readings = calm(ranks);
  add_gpus(readings);
  readings.machine = "A processor whose name is as long as names of processors are, 2.10GHz, 224 cores";
  readings.ranks[1].spin_seconds = always(10e-3);
  readings.ranks[1].waited = always(0.5);
  readings.hosts[0].cores[1].busy = always(1);
  readings.hosts[0].others = {{4711, "a_long_name_of_", 1.0}, {4712, "another_long_na", 0.9}};
  readings.links[0].pairs.back().latency_seconds = always(1e-3);
  readings.ranks[0].devices[0].values["throttle_reasons"] = always(0xff);
  readings.build.type = "Debug";
  return readings;
}

TEST(Text, BeginsWithTheVerdict) {
  EXPECT_THAT(text_report(calm(2), {}), StartsWith("This machine is fit to measure on"));
  EXPECT_THAT(text_report(ill(3), findings_of(ill(3))),
              StartsWith("This machine is NOT fit to measure on: "));
}

TEST(Text, IsAtMostAHundredColumnsWide) {
  for (const int ranks : {1, 2, 3, 12, 13, 64, 90, 128}) {
    const Readings readings = ranks > 2 ? ill(ranks) : calm(ranks);
    const std::string text = text_report(readings, findings_of(readings));
    EXPECT_LE(widest(text), 100u) << ranks << " ranks:\n" << text.substr(0, 2000);
  }
}

TEST(Text, ShowsEveryPair) {
  Readings readings = calm(3);
  readings.links[0].pairs[1].latency_seconds = always(7.25e-6);   // of ranks 0 and 2
  readings.links[0].pairs[2].large_seconds = always(524.288e-6);  // of ranks 1 and 2
  const std::string text = text_report(readings, {});
  EXPECT_THAT(text, HasSubstr("     0      -   0.50   7.25\n"));
  EXPECT_THAT(text, HasSubstr("     2   6.99   2.00      -\n"));
}

TEST(Text, ShowsManyRanksAsCharacters) {
  Readings readings = calm(16);
  readings.links[0].pairs[1].latency_seconds = always(20e-6);  // of ranks 0 and 2
  readings.links[0].pairs[2].large_seconds = always(450e-6);   // of ranks 0 and 3
  const std::string text = text_report(readings, {});
  EXPECT_THAT(text, HasSubstr("     0 -.#.............\n"));
  EXPECT_THAT(text, HasSubstr("     3 3..-............\n"));
}

TEST(Json, HasTheFindingsAndTheReadings) {
  const Readings readings = ill(3);
  const auto json = nlohmann::json::parse(json_report(readings, findings_of(readings)));
  EXPECT_EQ(json["fit"], false);
  EXPECT_EQ(json["findings"][0]["about"], "rank");
  EXPECT_EQ(json["findings"][0]["ranks"], nlohmann::json({1}));
  EXPECT_EQ(json["readings"]["links"][0]["pairs"].size(), 3u);
  EXPECT_EQ(json["readings"]["ranks"][1]["spin_seconds"][0], 10e-3);
  EXPECT_EQ(nlohmann::json::parse(json_report(calm(2), {}))["fit"], true);
}

TEST(Readings, SurviveTheWayBetweenProcesses) {
  Readings readings = ill(3);
  readings.hosts[0].others[0].name = "not utf-8: \xff";
  EXPECT_EQ(text_of(rank_from(text_of(readings.ranks[1]))), text_of(readings.ranks[1]));
  const HostReadings host = host_from(text_of(readings.hosts[0]));
  EXPECT_EQ(host.cores.size(), 3u);
  EXPECT_EQ(host.cores[1].busy, always(1));
  EXPECT_EQ(readings.host(1).host, 1u);
  EXPECT_THROW(readings.host(2), std::out_of_range);
}

}  // namespace
}  // namespace baton::doctor
