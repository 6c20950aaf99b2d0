// SPDX-License-Identifier: Apache-2.0
// The keys of a block that queries see: numbers of pairs, and right values under documents.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "sp_methods/kernels/softmax.hpp"

namespace baton::test {
namespace {

TEST(softmax_mask, visible_pairs_of_all_blocks_are_the_causal_triangle) {
  double pairs = 0;
  for (int p = 0; p < 4; ++p) {
    double of_rank = 0;
    for (int j = 0; j < 4; ++j) {
      of_rank += SoftmaxShape{16,
                              16,
                              1,
                              1,
                              1,
                              Cut{Layout::zigzag, 4, 16}.positions(p),
                              Cut{Layout::zigzag, 4, 16}.positions(j)}
                     .visible_pairs();
    }
    EXPECT_EQ(of_rank, 64.0 * 65.0 / 2.0 / 4.0);
    pairs += of_rank;
  }
  EXPECT_EQ(pairs, 64.0 * 65.0 / 2.0);
}

TEST(softmax_mask, visible_pairs_are_those_that_each_query_sees) {
  for (const Mask& mask : {Mask{}, Mask{MaskKind::full}, Mask{MaskKind::full, 30}, Mask{.window = 1},
                           Mask{.window = 9}, Mask{.window = 40}})
    for (const Positions& queries :
         {Positions::run(16, 16), Cut{Layout::zigzag, 4, 16}.positions(1),
          Cut{Layout::zigzag, 4, 16}.positions(1).last(12, 16), Cut{Layout::striped, 4, 16}.positions(1)})
      for (const Positions& keys :
           {Positions::run(0, 24), Positions::run(2 * 24, 24), Cut{Layout::zigzag, 3, 24}.positions(2),
            Cut{Layout::striped, 4, 24}.positions(2)}) {
        SoftmaxShape s{queries.split == 4 ? 12 : 16, 24, 1, 1, 1, queries, keys};
        s.mask = mask;
        double pairs = 0;
        for (std::int64_t i = 0; i < s.q_tokens; ++i)
          pairs += static_cast<double>(s.visible(i) - s.hidden(i));
        EXPECT_EQ(s.visible_pairs(), pairs) << queries.first << ", " << keys.first;
        std::int64_t seen = 0;
        for (std::int64_t i = 0; i < s.q_tokens; ++i)
          for (std::int64_t j = 0; j < s.k_tokens; ++j)
            seen += keys.at(j) >= mask.lower(queries.at(i)) && keys.at(j) <= mask.upper(queries.at(i));
        EXPECT_EQ(pairs, static_cast<double>(seen)) << queries.first << ", " << keys.first;
      }
}

/// Eight tokens with the values 0 to 7 and equal scores, in documents of 3, 0, 1 and 4 tokens.
TEST(softmax_mask, documents_have_their_right_values) {
  const auto starts = std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{0, 3, 4});
  const std::vector<float> zero(8, 0), one(8, 1), v{0, 1, 2, 3, 4, 5, 6, 7};
  const auto expect = [&](const Mask& mask, const std::vector<float>& o, const std::vector<float>& dv) {
    SoftmaxGradientsShape shape{{8, 8, 1, 1, 1, Positions::run(0, 8), Positions::run(0, 8)}, {}, {}};
    shape.mask = mask;
    shape.mask.starts = starts;
    std::vector<float> out(8), lse(8), delta(8), dq(8), dk(8), got(8);
    SoftmaxBlock::on_host({.in = {zero.data(), zero.data(), v.data()}, .out = out.data(), .lse = lse.data()},
                          shape);
    SoftmaxDelta::on_host({.d_o = one.data(), .out = out.data(), .delta = delta.data()}, shape);
    SoftmaxBlockGradients::on_host({.in = {zero.data(), zero.data(), v.data()},
                                    .d_o = one.data(),
                                    .lse = lse.data(),
                                    .delta = delta.data(),
                                    .dq = dq.data(),
                                    .dk = dk.data(),
                                    .dv = got.data()},
                                   shape);
    for (int i = 0; i < 8; ++i) {
      EXPECT_NEAR(out[i], o[i], 1e-6) << i;
      EXPECT_NEAR(got[i], dv[i], 1e-6) << i;
    }
  };
  expect({}, {0, .5, 1, 3, 4, 4.5, 5, 5.5},
         {11 / 6.F, 5 / 6.F, 1 / 3.F, 1, 25 / 12.F, 13 / 12.F, 7 / 12.F, .25});
  expect({MaskKind::full, 8}, {1, 1, 1, 3, 5.5, 5.5, 5.5, 5.5}, {1, 1, 1, 1, 1, 1, 1, 1});
  expect({.window = 2}, {0, .5, 1.5, 3, 4, 4.5, 5.5, 6.5}, {1.5, 1, .5, 1, 1.5, 1, 1, .5});
}

}  // namespace
}  // namespace baton::test
