// SPDX-License-Identifier: Apache-2.0
#include "harness/layers/given_lengths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "collectives/schedule/errors.hpp"

namespace {

using namespace baton;
using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const std::vector<std::string>& words) {
  try {
    given_lengths("--documents", words);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

/// A file with this text, which lies in the folder of the test.
std::string file_with(const std::string& text) {
  const std::string path = testing::TempDir() + "lengths_of_" +
                           testing::UnitTest::GetInstance()->current_test_info()->name() + ".txt";
  std::ofstream(path) << text;
  return path;
}

TEST(GivenLengths, AreNumbersWithOrWithoutAUnit) {
  EXPECT_THAT(given_lengths("--documents", {"37", "51", "0", "1", "2K"}), ElementsAre(37, 51, 0, 1, 2048));
}

TEST(GivenLengths, StandInAFileOneALine) {
  EXPECT_THAT(given_lengths("--documents", {file_with("# of a batch\n37\n\n 51 # the second\n40")}),
              ElementsAre(37, 51, 40));
}

TEST(GivenLengths, RefuseWhatIsNone) {
  EXPECT_THAT(refusal({"37", "x"}), HasSubstr("--documents"));
  EXPECT_THAT(refusal({"37", ""}), HasSubstr("--documents"));
  EXPECT_THAT(refusal({"-3"}), HasSubstr("neither a number nor a file"));
  EXPECT_THAT(refusal({"/no/such/file"}), HasSubstr("/no/such/file is neither a number nor a file"));
  EXPECT_THAT(refusal({file_with("37\nmany\n")}), HasSubstr("many"));
  EXPECT_THAT(refusal({file_with("37 91\n")}), HasSubstr("'37 91' is not a number of tokens"));
  EXPECT_THAT(refusal({file_with("# nothing\n")}), HasSubstr("0 tokens together"));
  EXPECT_THAT(refusal({"0", "0"}), HasSubstr("0 tokens together"));
  EXPECT_THAT(refusal({"16M", "1"}), HasSubstr("16777217 tokens together"));
}

}  // namespace
