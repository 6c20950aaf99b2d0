// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/softmax_runs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t tokens = 12;

SoftmaxShape block(const Positions& q, const Positions& k, std::int64_t keys = tokens) {
  return {tokens, keys, 2, 4, 4, q, k};
}

TEST(softmax_runs, own_block_is_one_causal_run_in_every_layout) {
  for (const Positions& own :
       {Positions::run(2 * tokens, tokens), Cut{Layout::zigzag, 4, tokens}.positions(1),
        Cut{Layout::striped, 4, tokens}.positions(1)})
    EXPECT_THAT(mask_runs(block(own, own)), ElementsAre(MaskRun{0, tokens, tokens, true}));
}

TEST(softmax_runs, blocks_of_other_ranks_are_one_run) {
  const auto zigzag = [](int rank) { return Cut{Layout::zigzag, 4, tokens}.positions(rank); };
  const auto striped = [](int rank) { return Cut{Layout::striped, 4, tokens}.positions(rank); };
  EXPECT_THAT(mask_runs(block(Positions::run(tokens, tokens), Positions::run(0, tokens))),
              ElementsAre(MaskRun{0, tokens, tokens, false}));
  EXPECT_THAT(mask_runs(block(Positions::run(0, tokens), Positions::run(tokens, tokens))), IsEmpty());
  EXPECT_THAT(mask_runs(block(zigzag(2), zigzag(1))), ElementsAre(MaskRun{0, tokens, tokens / 2, false}));
  EXPECT_THAT(mask_runs(block(zigzag(1), zigzag(2))),
              ElementsAre(MaskRun{tokens / 2, tokens / 2, tokens, false}));
  EXPECT_THAT(mask_runs(block(striped(2), striped(1))), ElementsAre(MaskRun{0, tokens, tokens, true}));
  EXPECT_THAT(mask_runs(block(striped(1), striped(2))),
              ElementsAre(MaskRun{1, tokens - 1, tokens - 1, true}));
}

TEST(softmax_runs, gathered_keys_are_a_run_for_each_piece_of_the_queries) {
  const std::int64_t half = tokens / 2, last = 7 * half;
  EXPECT_THAT(mask_runs(block(Cut{Layout::zigzag, 4, tokens}.positions(1), Positions::run(0, last), last)),
              ElementsAre(MaskRun{0, half, 2 * half, true}, MaskRun{half, half, last, true}));
}

TEST(softmax_runs, a_full_mask_is_one_whole_run_without_the_padding) {
  SoftmaxShape shape = block(Cut{Layout::zigzag, 4, tokens}.positions(0), Positions::run(2 * tokens, tokens));
  shape.mask.kind = MaskKind::full;
  EXPECT_THAT(mask_runs(shape), ElementsAre(MaskRun{0, tokens, tokens, false}));
  EXPECT_EQ(shape.visible_pairs(), tokens * tokens);
  shape.mask.end = 2 * tokens + 5;
  EXPECT_THAT(mask_runs(shape), ElementsAre(MaskRun{0, tokens, 5, false}));
  EXPECT_EQ(shape.visible_pairs(), tokens * 5);
  shape.mask.end = 2 * tokens;
  EXPECT_THAT(mask_runs(shape), IsEmpty());
}

/// Whatever the positions, runs have the pairs of the mask.
TEST(softmax_runs, have_the_pairs_that_the_mask_leaves) {
  for (int queries = 0; queries < 4; ++queries)
    for (int keys = 0; keys < 4; ++keys)
      for (const auto layout : {Layout::zigzag, Layout::striped}) {
        const SoftmaxShape shape =
            block(Cut{layout, 4, tokens}.positions(queries), Cut{layout, 4, tokens}.positions(keys));
        std::int64_t pairs = 0;
        for (const MaskRun& run : mask_runs(shape)) {
          const std::int64_t hidden = run.causal ? run.queries * (run.queries - 1) / 2 : 0;
          pairs += run.queries * run.keys - hidden;
        }
        EXPECT_EQ(pairs, shape.visible_pairs()) << queries << " to " << keys;
      }
}

TEST(softmax_runs, positions_with_no_such_mask_are_more_runs_than_asked_for) {
  const SoftmaxShape shape =
      block(Cut{Layout::striped, 4, tokens}.positions(0), Positions::run(0, 4 * tokens), 4 * tokens);
  EXPECT_EQ(mask_runs(shape, 4).size(), 5U);
}

}  // namespace
}  // namespace baton::test
