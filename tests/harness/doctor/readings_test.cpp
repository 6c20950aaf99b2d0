// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/readings.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace baton::doctor {
namespace {

TEST(Readings, OfAllProcessesAreOneDocument) {
  const HostReadings host{.host = 7, .others = {{.number = 4711, .name = "not utf-8: \xff", .cores = 1}}};
  const RankReadings rank{.rank = 1, .host = 7, .spin_seconds = {5e-3}};
  const auto all =
      nlohmann::json::parse(text_of(Readings{.machine = "a \"machine\"",
                                             .hosts = {text_of(host)},
                                             .ranks = {text_of(RankReadings{}), text_of(rank)}}));
  EXPECT_EQ(all["machine"], "a \"machine\"");
  EXPECT_EQ(all["hosts"][0]["others"][0]["name"], "not utf-8: \ufffd");
  EXPECT_EQ(all["ranks"].size(), 2u);
  EXPECT_EQ(all["ranks"][1]["spin_seconds"][0], 5e-3);
  EXPECT_EQ(all["failure"], "");
}

}  // namespace
}  // namespace baton::doctor
