// SPDX-License-Identifier: Apache-2.0
// Sizes in words, and names that this build or these methods do not have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/executors/executor.hpp"
#include "harness/layers/options.hpp"
#include "tests/harness/options/parse.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;

TEST(Options, TokensTakeUnitsAndOtherCountsDoNot) {
  EXPECT_EQ(
      parse({"--tokens", "4K", "--collectives", "ring_exchange"})->cases[0].workload->axes().whole("tokens"),
      4096);
  const auto options =
      parse({"--methods", "zeco", "--tokens", "1K,2048", "--chunk", "1K"}, parse_operator_options);
  ASSERT_EQ(options->cases.size(), 2u);
  EXPECT_EQ(options->cases[0].workload->axes().whole("tokens"), 1024);
  EXPECT_EQ(options->cases[1].workload->axes().whole("tokens"), 2048);
  EXPECT_THAT(error_of({"--tokens", "4K,4096"}, parse_operator_options), HasSubstr("names 4096 twice"));
  EXPECT_THAT(error_of({"--tokens", "4X"}), HasSubstr("'4X' is not a number of tokens such as 4096 or 4K"));
  EXPECT_THAT(error_of({"--tokens", "1G"}), HasSubstr("is not in range 1 to 16777216"));
  EXPECT_THAT(error_of({"--heads", "4K"}), HasSubstr("'4K' is not a whole number"));
}

TEST(Options, ExecutorsOfGpusAreOfTheCudaBuild) {
  for (const std::string name : {"nccl", "peer", "peer_bf16"}) {
    if (executor_registry().find(name) != nullptr) continue;
    EXPECT_THAT(error_of({"--executor", "local," + name}),
                HasSubstr("--executor: " + name + " needs the cuda build"));
  }
  EXPECT_THAT(error_of({"--executor", "gpu"}), testing::Not(HasSubstr("did you mean")));
}

TEST(Options, AScanNeedsAMethodThatCarriesStatesByOne) {
  EXPECT_THAT(error_of({"--methods", "local,ring_attention", "--scan", "two_shot"}, parse_operator_options),
              HasSubstr("--scan: none of these methods carries states by a scan: local, ring_attention"));
  EXPECT_TRUE(parse({"--methods", "local,zeco", "--scan", "two_shot"}, parse_operator_options));
  EXPECT_TRUE(parse({"--scan", "two_shot"}, parse_operator_options));
}

}  // namespace
