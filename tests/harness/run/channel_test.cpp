// SPDX-License-Identifier: Apache-2.0
// What a launch and the process that started it send one another through files.
#include "harness/run/channel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/harness/record/made_case.hpp"
#include "tests/scratch_folder.hpp"

namespace {

using namespace baton;
using testing::ElementsAre;

class Sent : public testing::Test {
 protected:
  Sent() { std::ofstream{sender_.messages_path()}; }

  /// The messages that have come since the last call, by their kinds.
  std::vector<std::size_t> kinds() {
    std::vector<std::size_t> all;
    receiver_.receive([&](const Message& message) {
      all.push_back(message.index());
      last_ = message;
    });
    return all;
  }

  const ScratchFolder scratch_;
  Channel sender_{scratch_.path().string()}, receiver_{scratch_.path().string()};
  Message last_;
};

TEST_F(Sent, AMessageComesAsItWasOnce) {
  sender_.send(RanksMet{});
  sender_.send(Notice{"local", "# local: fast\n"});
  EXPECT_THAT(kinds(), ElementsAre(0u, 3u));
  EXPECT_EQ(std::get<Notice>(last_).text, "# local: fast\n");
  sender_.send(CaseBegins{3});
  EXPECT_THAT(kinds(), ElementsAre(1u));
  EXPECT_EQ(std::get<CaseBegins>(last_).index, 3);
  const Result result = made_case({0.1, 1e-7, 3}).result();
  sender_.send(CaseEnds{3, result});
  EXPECT_THAT(kinds(), ElementsAre(2u));
  EXPECT_EQ(std::get<CaseEnds>(last_).result.line(), result.line());
  EXPECT_THAT(kinds(), ElementsAre());
}

TEST_F(Sent, HalfALineIsNone) {
  sender_.send(CaseBegins{0});
  std::ofstream(sender_.messages_path(), std::ios::app) << R"({"ends":0,"res)";
  EXPECT_THAT(kinds(), ElementsAre(1u));
  Channel(scratch_.path().string()).send(CaseBegins{1});  // of the launch after the crash
  EXPECT_THAT(kinds(), ElementsAre(1u));
  EXPECT_EQ(std::get<CaseBegins>(last_).index, 1);
}

TEST_F(Sent, AReportOfAFailureIsNoMessage) {
  std::ofstream(sender_.messages_path()) << R"({"what":"died","rank":1})"
                                         << "\n";
  sender_.send(CaseBegins{3});
  EXPECT_THAT(kinds(), ElementsAre(1u));
}

TEST_F(Sent, APlanIsReadAsItWasWritten) {
  sender_.write_plan({false, {2, 0, 5}});
  const Plan plan = receiver_.read_plan();
  EXPECT_FALSE(plan.is_last);
  EXPECT_THAT(plan.cases, ElementsAre(2, 0, 5));
}

}  // namespace
