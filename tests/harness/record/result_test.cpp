// SPDX-License-Identifier: Apache-2.0
#include "harness/record/result.hpp"

#include <gtest/gtest.h>

#include "harness/machine/system.hpp"

namespace {

using namespace baton;
using Json = Result::Json;

TEST(Result, HasItsKeysInTheOrderOfTheSchema) {
  Result result;
  result.set("launch", 2);
  result.set("machine.cores", 8);
  result.set("executor", "mpi");
  result.set("machine.host", "here");
  EXPECT_EQ(result.line(), R"({"executor":"mpi","machine":{"host":"here","cores":8},"launch":2})");
}

TEST(Result, HasNullOrNothingForWhatIsUnknown) {
  Result result;
  result.set("hops", std::optional<int>());
  result.set("floor_seconds", std::optional<double>());
  EXPECT_EQ(result.line(), R"({"hops":null})");
}

TEST(Result, LeavesOutWhatAbsenceSaysAsWell) {
  Result result;
  result.set("map", "diagonal");
  result.set("ranks_per_gpu", 1);
  result.set("cycle", 0);
  EXPECT_EQ(result.line(), R"({"cycle":0})") << "which every record has";
  result.set("map", "affine");
  EXPECT_EQ(result.line(), R"({"map":"affine","cycle":0})");
}

TEST(Result, IsReadWithWhatAbsenceStandsFor) {
  const Result result(Json::parse(R"({"hops":null,"ranks":3,"a later key":1})"));
  EXPECT_EQ(result.whole("ranks"), 3);
  EXPECT_EQ(result.whole("ranks_per_gpu"), 1);
  EXPECT_EQ(result.text("map"), "diagonal");
  EXPECT_EQ(result.whole("warmup"), 0) << "which stands for nothing";
  EXPECT_FALSE(result.known<int>("hops"));
  EXPECT_THROW(Result(Json{{"ranks", "many"}}).whole("ranks"), nlohmann::json::exception);
}

TEST(Result, ReadsPartsOfObjectsAsTheyWereWritten) {
  Result written;
  written.set("conditions.cores", 2);
  written.set("conditions.quota", 1.5);
  const Result read(Json::parse(written.line()));
  EXPECT_EQ(read.whole("conditions.cores"), 2);
  EXPECT_EQ(read.known<double>("conditions.quota"), 1.5);
  EXPECT_EQ(read.whole("conditions.throttled"), 0);
  EXPECT_EQ(read.line(), written.line());
}

TEST(Result, SaysWhyItHasNoTimes) {
  Result result;
  result.set("wrong", 3);
  result.set("first_wrong", "element 5");
  EXPECT_EQ(result.reason(), "3 wrong elements, first element 5");
  result.set("skipped", "no GPU");
  EXPECT_EQ(result.reason(), "no GPU");
  EXPECT_FALSE(result.is_timed());
}

TEST(Result, HasNoCharacterThatReadersRefuse) {
  Result result;
  result.set("stands_on", "a \x1b[31mmachine");
  result.set("session", "s\u2066\xff");
  result.set("machine", Json{{"environment", {{"OMP_X", "a\tb"}, {"OMP_\n", "c"}}},
                             {"settings", {{"btl", "\u202eself"}}}});
  const Json json = result.json();
  EXPECT_EQ(json["machine"]["environment"]["OMP_X"], "a\\tb");
  EXPECT_EQ(json["machine"]["environment"]["OMP_\\n"], "c");
  EXPECT_EQ(json["machine"]["settings"]["btl"], "\\xe2\\x80\\xaeself");
  EXPECT_EQ(printable(result.line()), result.line());
  EXPECT_EQ(Result(Json::parse(result.line())).line(), result.line()) << "the same once more";
}

}  // namespace
