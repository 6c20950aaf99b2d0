// SPDX-License-Identifier: Apache-2.0
#include "harness/options/grid.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "harness/layers/options.hpp"
#include "tests/harness/options/parse.hpp"

namespace {

using namespace baton;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Grid, ItsLastAxisChangesFastest) {
  Grid<std::string> grid("");
  grid.vary("--a", std::vector<int>{1, 2}, [](std::string& one, int value) { one += std::to_string(value); })
      .vary("--b", std::vector<char>{'x', 'y'}, [](std::string& one, char value) { one += value; });
  EXPECT_THAT(grid.points(), ElementsAre("1x", "1y", "2x", "2y"));
}

TEST(Grid, RefusesWhatNobodyCanRead) {
  Grid<int> grid(0);
  const std::vector<int> many(1, 1), twice{3, 3};
  EXPECT_THROW(grid.vary("--a", twice, [](int&, int) {}), UsageError);
  std::vector<int> numbers(400);
  for (int i = 0; i < 400; ++i) numbers[i] = i;
  grid.vary("--a", numbers, [](int&, int) {});
  EXPECT_THROW(grid.vary("--b", numbers, [](int&, int) {}), UsageError);
}

TEST(AxisFlags, TakeNameAndHelpFromTheSchemaAndMakeAPointOfEachCombination) {
  Flags flags("a_bench", "A bench.");
  AxisFlags<std::string> axes(flags);
  axes.add<int>("heads", {7}, [](std::string& one, int heads) { one += std::to_string(heads); });
  axes.add("pass", {"both"}, {"forward", "both"},
           [](std::string& one, const std::string& word) { one += word.front(); });
  EXPECT_THAT(axes.points("p"), ElementsAre("p7b")) << "the defaults";
  EXPECT_TRUE(flags.parse({"a_bench", "--heads", "1,2", "--pass", "all"}));
  EXPECT_THAT(axes.points("p"), ElementsAre("p1f", "p1b", "p2f", "p2b"));
  EXPECT_THAT(flags.help(), HasSubstr("heads of a state"));
}

/// The names of the cases that words ask for.
std::set<std::string> names(const std::vector<std::string>& words, Parse* parse_options) {
  std::set<std::string> all;
  const auto options = parse(words, parse_options);
  for (const Case& one : options->cases) all.insert(one.name());
  EXPECT_EQ(all.size(), options->cases.size()) << "no case is there twice";
  return all;
}

TEST(Lists, EveryAxisOfALayerTakesOne) {
  for (const auto& [flag, values] :
       std::vector<std::pair<std::string, std::string>>{{"--tokens", "64,128"},
                                                        {"--sequence", "99,100"},
                                                        {"--packed", "0,16"},
                                                        {"--mask", "causal,full"},
                                                        {"--mask", "window:4,window:5"},
                                                        {"--heads", "2,4"},
                                                        {"--batch", "1,3"},
                                                        {"--kv-heads", "0,4"},
                                                        {"--qk-heads", "0,4"},
                                                        {"--d-k", "8,16"},
                                                        {"--d-v", "8,16"},
                                                        {"--chunk", "16,32"},
                                                        {"--conv", "0,4"},
                                                        {"--gate-kind", "vector,scalar"},
                                                        {"--gate-draw", "mixed,weak"},
                                                        {"--groups", "1,2"},
                                                        {"--dtype", "f32,bf16"},
                                                        {"--pass", "forward,both"},
                                                        {"--state", "none,both"},
                                                        {"--scan", "all_scan,two_shot"},
                                                        {"--ranks-per-node", "0,2"},
                                                        {"--threads-per-rank", "1,2"}})
    EXPECT_EQ(names({"--methods", "zeco", "--executor", "tcp", "--ranks", "2", flag, values},
                    parse_operator_options)
                  .size(),
              2u)
        << flag;
}

TEST(Lists, ASequenceIsPaddedForEachMethodAndNumberOfRanks) {
  const auto options = parse(
      {"--methods", "zeco,ring_attention_zigzag", "--executor", "tcp", "--ranks", "1,4", "--sequence", "698"},
      parse_operator_options);
  std::vector<std::int64_t> tokens;
  for (const Case& one : options->cases) {
    EXPECT_THAT(one.contest(), HasSubstr("sequence:698"));
    EXPECT_THAT(one.contest(), Not(HasSubstr("tokens:")));
    tokens.push_back(one.axes().whole("tokens"));
  }
  EXPECT_THAT(tokens, ElementsAre(698, 698, 175, 176));
}

TEST(Lists, AreCombined) {
  EXPECT_EQ(names({"--methods", "zeco,lasp2", "--heads", "2,4", "--d-k", "8,16,32", "--tokens", "64"},
                  parse_operator_options)
                .size(),
            12u);
}

TEST(Lists, OfScansAreForMethodsThatHaveOne) {
  const auto found = names({"--methods", "zeco,ulysses,local", "--scan", "all_scan,two_shot", "--mode",
                            "overlapped,compute_only", "--executor", "local", "--tokens", "64"},
                           parse_operator_options);
  EXPECT_EQ(found.size(), 3u + 2 + 1) << "zeco by two scans and without one, ulysses in two modes, local";
}

TEST(Lists, OfWhatSoftmaxAttentionHasNotMakeNoRowOfIt) {
  EXPECT_EQ(names({"--methods", "ring_attention_softmax", "--gate-kind", "vector,scalar", "--gate-draw",
                   "mixed,weak", "--chunk", "16,32", "--tokens", "64"},
                  parse_operator_options)
                .size(),
            1u);
}

TEST(Lists, EveryAxisOfACollectiveTakesOne) {
  for (const auto& [flag, values] : std::vector<std::pair<std::string, std::string>>{
           {"--heads", "2,4"}, {"--d-k", "8,16"}, {"--d-v", "8,16"}, {"--direction", "forward,reverse"}})
    EXPECT_EQ(names({"--collectives", "ring_scan", flag, values}, parse_collective_options).size(), 2u)
        << flag;
  EXPECT_EQ(names({"--collectives", "ring_scan,ring_exchange", "--tokens", "8,16"}, parse_collective_options)
                .size(),
            3u)
      << "a scan has no tokens";
}

TEST(Lists, ThatNameAValueTwiceAreRefusedByName) {
  EXPECT_THAT(error_of({"--heads", "4,4"}), HasSubstr("--heads names 4 twice"));
  EXPECT_THAT(error_of({"--gate-draw", "weak,weak"}, parse_operator_options),
              HasSubstr("--gate-draw names weak twice"));
  EXPECT_THAT(error_of({"--attention", "gdn", "--methods", "zeco", "--heads", "16777216", "--d-k", "65536",
                        "--d-v", "1", "--tokens", "1"},
                       parse_operator_options),
              HasSubstr("--heads, --d-k, --d-v, --tokens: a tensor of 262144 TiB"))
      << "a matrix a head";
  EXPECT_THAT(error_of({"--heads", "6,8", "--kv-heads", "4"}, parse_operator_options),
              HasSubstr("--kv-heads: 4 heads of keys do not divide 6 heads"));
  EXPECT_THAT(error_of({"--heads", "6,8", "--qk-heads", "4"}, parse_operator_options),
              HasSubstr("--qk-heads: 4 heads of q and k do not divide 6 heads"));
}

}  // namespace
