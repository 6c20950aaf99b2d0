// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/kernel.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace baton;
using Values = std::vector<float>;

TEST(Combine, AppliesAMapToAState) {
  const Values earlier{1, 2, 3, 4}, decay{0.5f, 2}, later{10, 20, 30, 40};
  Values into(4);
  combine_on_host({{into}, {earlier, decay, later}});
  EXPECT_EQ(into, (Values{10.5f, 21, 36, 48}));
}

TEST(Combine, ComposesTwoMaps) {
  const Values decay1{0.5f, 3}, state1{1, 2}, decay2{0.25f, 2}, state2{5, 6};
  Values decay(2), state(2);
  combine_on_host({{decay, state}, {decay1, state1, decay2, state2}});
  EXPECT_EQ(decay, (Values{0.125f, 6}));
  EXPECT_EQ(state, (Values{5.25f, 10}));
}

TEST(Combine, ComposesInPlaceOfEitherOperand) {
  for (const bool into_later : {false, true}) {
    Values decay1{0.5f, 3}, state1{1, 2}, decay2{0.25f, 2}, state2{5, 6};
    Values& decay = into_later ? decay2 : decay1;
    Values& state = into_later ? state2 : state1;
    combine_on_host({{decay, state}, {decay1, state1, decay2, state2}});
    EXPECT_EQ(decay, (Values{0.125f, 6}));
    EXPECT_EQ(state, (Values{5.25f, 10}));
  }
}

TEST(Combine, IsAssociativeButDoesNotCommute) {
  const Values gamma{0.5f, 2, 4}, state{1, 2, 3};
  const auto after = [](float later_gamma, float later, float earlier) {
    return later_gamma * earlier + later;
  };
  const float left = after(gamma[2], state[2], after(gamma[1], state[1], state[0]));
  Values decay{gamma[1]}, composed{state[1]};
  combine_on_host({{decay, composed}, {decay, composed, std::span(gamma).last(1), std::span(state).last(1)}});
  EXPECT_EQ(after(decay[0], composed[0], state[0]), left);
  EXPECT_NE(after(gamma[1], state[1], after(gamma[2], state[2], state[0])), left);
}

/// Two heads of one matrix [[1, 2], [3, 4]] and one [[0, 1], [5, 0]], states of two rows each.
struct TwoHeads {
  Values matrices{1, 2, 3, 4, 0, 1, 5, 0};
  Values earlier{1, 1, 0, 2, 3, 1, 1, 0};
  Values later{10, 20, 30, 40, 50, 60, 70, 80};
};

Combine affine(bool transposed = false, std::int64_t first = 0) {
  return {{.kind = MapKind::affine, .share = 2, .first = first, .transposed = transposed}, 2};
}

TEST(Combine, MultipliesEveryRowWithItsHeadsMatrix) {
  const TwoHeads x;
  Values into(8);
  combine_on_host({{into}, {x.earlier, x.matrices, x.later}}, affine());
  EXPECT_EQ(into, (Values{13, 27, 34, 48, 51, 75, 70, 85}));
}

TEST(Combine, MultipliesWithTheTransposedMatrixInTheBackwardPass) {
  const TwoHeads x;
  Values into(8);
  combine_on_host({{into}, {x.earlier, x.matrices, x.later}}, affine(true));
  EXPECT_EQ(into, (Values{14, 26, 36, 48, 55, 63, 70, 81}));
}

TEST(Combine, TakesABlockThatBeginsAndEndsWithinAHead) {
  const TwoHeads x;
  Values into(4);
  combine_on_host(
      {{into}, {std::span(x.earlier).subspan(2, 4), x.matrices, std::span(x.later).subspan(2, 4)}},
      affine(false, 1));
  EXPECT_EQ(into, (Values{34, 48, 51, 75}));
}

TEST(Combine, GivesAllRowsOfAHeadItsDecayIfMapsAreScalar) {
  const TwoHeads x;
  const Values decays{2, 3};
  Values into(4);
  combine_on_host({{into}, {std::span(x.earlier).subspan(2, 4), decays, std::span(x.later).subspan(2, 4)}},
                  {{.kind = MapKind::scalar, .share = 2, .first = 1}, 2});
  EXPECT_EQ(into, (Values{30, 44, 59, 63}));
}

/// The state that `first` becomes under two maps, one after the other or composed.
Values after_two(const Combine& by, bool composed, bool in_place) {
  const TwoHeads x;
  const Values first{1, 2, 3, 4, 5, 6, 7, 8};
  Values matrices{2, 0, 1, 1, 1, 1, 0, 3}, state{1, 0, 0, 1, 2, 0, 0, 2}, into(8), product(8), sum(8);
  if (!composed) {
    combine_on_host({{into}, {first, x.matrices, x.later}}, by);
    combine_on_host({{into}, {into, matrices, state}}, by);
    return into;
  }
  Values earlier_matrices = x.matrices, earlier_state = x.later;
  Values& to = in_place ? earlier_matrices : product;
  Values& to_state = in_place ? earlier_state : sum;
  combine_on_host({{to, to_state}, {earlier_matrices, earlier_state, matrices, state}}, by);
  combine_on_host({{into}, {first, to, to_state}}, by);
  return into;
}

TEST(Combine, ComposedMatricesActAsOneAfterTheOther) {
  for (const bool transposed : {false, true}) {
    const Combine by = affine(transposed);
    EXPECT_EQ(after_two(by, true, false), after_two(by, false, false));
    EXPECT_EQ(after_two(by, true, true), after_two(by, false, false));
  }
}

}  // namespace
