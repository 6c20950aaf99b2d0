// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/attention_flops.hpp"

#include <gtest/gtest.h>

namespace {

using namespace baton;

TEST(AttentionFlops, CountTheRecurrenceAndHalfOfAllPairs) {
  EXPECT_EQ(attention_flops(Attention::linear, Rule::decay, 2, 3, 5).per_token, 4 * 2 * 3 * 5);
  EXPECT_EQ(attention_flops(Attention::linear, Rule::delta, 2, 3, 5).per_token, 6 * 2 * 3 * 5);
  EXPECT_EQ(attention_flops(Attention::linear, Rule::low_rank, 2, 3, 5).per_token, 8 * 2 * 3 * 5);
  EXPECT_EQ(attention_flops(Attention::softmax, Rule::decay, 2, 3, 5).per_pair, 2 * (3 + 5));
}

}  // namespace
