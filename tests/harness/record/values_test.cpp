// SPDX-License-Identifier: Apache-2.0
#include "harness/record/values.hpp"

#include <gtest/gtest.h>

namespace {

using namespace baton::schema;

std::string text_of(const Values& values) { return values.json().dump(); }

TEST(Values, StandInTheOrderOfTheSchema) {
  Values values;
  values.set("launch", 2);
  values.set("machine.cores", 8);
  values.set("executor", "mpi");
  values.set("machine.host", "here");
  EXPECT_EQ(text_of(values), R"({"executor":"mpi","machine":{"host":"here","cores":8},"launch":2})");
}

TEST(Values, AreNullOrLeftOutWhereTheyAreUnknown) {
  Values values;
  values.set("hops", std::optional<int>());
  values.set("floor_seconds", std::optional<double>());
  EXPECT_EQ(text_of(values), R"({"hops":null})");
}

TEST(Values, AreLeftOutWhereAbsenceSaysAsMuch) {
  Values values;
  values.set("map", "diagonal");
  values.set("ranks_per_gpu", 1);
  values.set("cycle", 0);
  EXPECT_EQ(text_of(values), R"({"cycle":0})") << "which every record has";
  values.set("map", "affine");
  EXPECT_EQ(text_of(values), R"({"map":"affine","cycle":0})");
}

TEST(Values, ThatAreReadAreWhatAbsenceStandsFor) {
  const auto record = nlohmann::json::parse(R"({"hops":null,"ranks":3})");
  EXPECT_EQ(value<int>(record, "ranks"), 3);
  EXPECT_EQ(value<int>(record, "ranks_per_gpu"), 1);
  EXPECT_EQ(value<std::string>(record, "map"), "diagonal");
  EXPECT_EQ(value<int>(record, "warmup"), 0) << "which stands for nothing";
  EXPECT_FALSE(known<int>(record, "hops"));
  EXPECT_THROW(value<int>(nlohmann::json{{"ranks", "many"}}, "ranks"), nlohmann::json::exception);
}

}  // namespace
