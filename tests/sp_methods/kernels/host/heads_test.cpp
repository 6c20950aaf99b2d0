// SPDX-License-Identifier: Apache-2.0
// The kernels that pack heads: what they move where, and that unpacking undoes packing.
#include "sp_methods/kernels/heads.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace {

using namespace baton;
using Values = std::vector<float>;

Values packed(const Values& tensor, const HeadBlocks& p) {
  Values blocks(p.elements(), -1);
  PackHeads::on_host({.blocks = blocks.data(), .tensor = tensor.data()}, p);
  return blocks;
}

Values unpacked(const Values& blocks, const HeadBlocks& p) {
  Values tensor(p.tokens * p.row(), -1);
  UnpackHeads::on_host({.tensor = tensor.data(), .blocks = blocks.data()}, p);
  return tensor;
}

TEST(PackHeads, GivesEachRankItsHeadsOfAllTokens) {
  EXPECT_EQ(packed({0, 1, 2, 3, 10, 11, 12, 13}, {.tokens = 2, .ranks = 2, .heads = 4, .width = 1}),
            (Values{0, 1, 10, 11, 2, 3, 12, 13}));
  EXPECT_EQ(packed({0, 1, 2, 3, 10, 11, 12, 13}, {.tokens = 2, .ranks = 2, .heads = 2, .width = 2}),
            (Values{0, 1, 10, 11, 2, 3, 12, 13}));
}

TEST(PackHeads, RepeatsAHeadThatRanksShare) {
  EXPECT_EQ(packed({0, 1, 10, 11}, {.tokens = 2, .ranks = 4, .heads = 2, .width = 1}),
            (Values{0, 10, 0, 10, 1, 11, 1, 11}));
}

TEST(UnpackHeads, AddsUpWhatTheSharersOfAHeadHave) {
  EXPECT_EQ(unpacked({1, 2, 10, 20, 3, 4, 30, 40}, {.tokens = 2, .ranks = 4, .heads = 2, .width = 1}),
            (Values{11, 33, 22, 44}));
}

TEST(UnpackHeads, UndoesPacking) {
  for (const HeadBlocks& p :
       {HeadBlocks{1, 5, 5, 3}, {7, 4, 8, 2}, {6, 1, 3, 8}, {3, 3, 3, 1}, {4, 6, 6, 5}}) {
    Values x(p.tokens * p.row());
    std::iota(x.begin(), x.end(), 0.0F);
    EXPECT_EQ(unpacked(packed(x, p), p), x);
  }
}

TEST(PackHeads, CountsEachOperandOnce) {
  EXPECT_EQ(PackHeads::bytes({3, 2, 4, 5, Dtype::bf16}), 2 * 60 * 2);
  EXPECT_EQ(UnpackHeads::bytes({3, 2, 4, 5}), 2 * 60 * 4);
  EXPECT_EQ(UnpackHeads::flops({3, 2, 4, 5}), 0);
  EXPECT_EQ(PackHeads::bytes({3, 4, 2, 5}), (30 + 60) * 4) << "each head is in two blocks";
  EXPECT_EQ(UnpackHeads::flops({3, 4, 2, 5}), 30);
}

}  // namespace
