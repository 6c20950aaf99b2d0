// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "collectives/schedule/kernel.hpp"

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

}  // namespace
