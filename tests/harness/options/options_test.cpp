// SPDX-License-Identifier: Apache-2.0
#include "harness/options/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/schedule/errors.hpp"
#include "harness/options/names.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;

using Parse = std::optional<Options>(int, char**);

std::optional<Options> parse(std::vector<std::string> words,
                             Parse* parse_options = parse_collective_options) {
  words.insert(words.begin(), "bench");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return parse_options(static_cast<int>(words.size()), argv.data());
}

std::string error_of(const std::vector<std::string>& words, Parse* parse_options = parse_collective_options) {
  try {
    parse(words, parse_options);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Options, DefaultsAreThePapers) {
  const auto options = parse({});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->warmup, 5);
  EXPECT_EQ(options->rounds, 50);
  EXPECT_EQ(options->cases.size(), collectives().size());
  EXPECT_EQ(options->cases[0].workload->state_bytes(), 2 << 20);
  EXPECT_EQ(options->processes(), 4);
}

TEST(Options, SizesMakeALadderOfHeads) {
  const auto options = parse({"-b", "256K", "-e", "1M", "-f", "2", "--collectives", "two_shot"});
  ASSERT_EQ(options->cases.size(), 3u);
  EXPECT_EQ(options->cases[0].workload->state_rows(), 4 * 128);
  EXPECT_EQ(options->cases[2].workload->state_bytes(), 1 << 20);
}

TEST(Options, RanksAreOnOneNodeUnlessToldOtherwise) {
  EXPECT_EQ(parse({})->cases[0].ranks_a_node, 0);
  EXPECT_EQ(parse({"--ranks-per-node", "3"})->cases[0].ranks_a_node, 3);
}

TEST(Options, MulticastIsOffUnlessAskedFor) {
  EXPECT_FALSE(executor_choices().multicast);
  parse({"--nvls"});
  EXPECT_TRUE(executor_choices().multicast);
  executor_choices() = {};
}

TEST(Options, CadencesAreWhatTheyAreCalled) {
  const auto options = parse({"--collectives", "two_shot", "--cadence", "graph,isolated,streaming"});
  ASSERT_EQ(options->cases.size(), 3u);
  EXPECT_EQ(options->cases[0].cadence, Cadence::graph);
  EXPECT_EQ(options->cases[1].cadence, Cadence::isolated);
  EXPECT_EQ(options->cases[2].cadence, Cadence::streaming);
}

TEST(Options, UnknownNamesBringTheNearestKnownOne) {
  EXPECT_THAT(error_of({"--collectives", "all_scam"}), HasSubstr("did you mean 'all_scan'?"));
  EXPECT_THAT(error_of({"--baseline", "two_shoot"}), HasSubstr("did you mean 'two_shot'?"));
  EXPECT_THAT(error_of({"--executor", "mpj"}), HasSubstr("unknown executor 'mpj', did you mean 'mpi'?"));
  EXPECT_THAT(error_of({"--methods", "zecco"}, parse_operator_options), HasSubstr("did you mean 'zeco'?"));
  EXPECT_THAT(error_of({"--scan", "all_gather"}, parse_operator_options), HasSubstr("unknown scan"));
}

TEST(Options, RefusesWhatCannotBe) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--heads", "0"},
           {"--heads", "-3"},
           {"--d-k", "x"},
           {"-n", "0"},
           {"-b", "0"},
           {"-b", "-1"},
           {"-b", "100"},
           {"-e", "1M"},
           {"--ranks", "0"},
           {"--ranks-per-node", "-1"},
           {"-c", "0"},
           {"--blocks", "0"},
           {"--blocks", "four"},
           {"--cadence", "sometimes"},
           {"--direction", "up"},
           {"--no-such-flag"},
           {"-b", "64K", "--heads", "4"},
           {"-b", "1E"},
           {"--heads", "16777216", "--d-k", "16777216", "--d-v", "16777216"},
           {"--benchmark_enable_random_interleaving=true"},
           {"--benchmark_repetitions=2"},
           {"--ranks", "2,2"},
           {"--collectives", "all_scan,all_scan"},
           {"-b", "2M", "-e", "1M"},
           {"--collectives", "two_shot", "--baseline", "all_scan"},
           {"--collectives", "ring_exchange", "--direction", "reverse"},
           {"--blocks", "2000000000"}})
    EXPECT_NE(error_of(words), "no error") << testing::PrintToString(words);
}

TEST(Options, OperatorsVaryPassAndModeAndLocalHasNoMode) {
  const auto options =
      parse({"--methods", "zeco,local", "--pass", "all", "--mode", "all"}, parse_operator_options);
  EXPECT_EQ(options->cases.size(), 3u * (3 + 1));
  EXPECT_EQ(options->baseline, "local");
  EXPECT_EQ(options->cases[0].workload->name(), "local");
}

TEST(Options, ErrorsAreOneLine) {
  EXPECT_EQ(error_of({"--heads", "0"}).find('\n'), std::string::npos);
  EXPECT_EQ(error_of({"--collectives", "nothing"}).find('\n'), std::string::npos);
}

TEST(Options, GoogleBenchmarksFlagsPassThrough) {
  const auto options = parse({"--benchmark_filter=all_scan", "--ranks", "2"});
  EXPECT_EQ(options->benchmark_arguments.back(), "--benchmark_filter=all_scan");
}

}  // namespace
