// SPDX-License-Identifier: Apache-2.0
#include "harness/record/cells.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace {

using namespace baton;

TEST(Cells, TimesHaveFourDigitsAndAtMostSixCharacters) {
  EXPECT_EQ(short_time(0.5e-6), "0.500");
  EXPECT_EQ(short_time(1.2345e-6), "1.234");
  EXPECT_EQ(short_time(123456e-6), "123456");
  EXPECT_EQ(short_time(12.345), "12.35s");
}

TEST(Cells, SizesAreShort) {
  EXPECT_EQ(short_size(2 << 20), "2M");
  EXPECT_EQ(short_size(2064 << 10), "2064K");
  EXPECT_EQ(short_size(std::int64_t{3} << 40), "3T");
  EXPECT_EQ(short_size(99999), "99999");
  EXPECT_EQ(short_size(2796032), "2.67M");
  EXPECT_EQ(short_size((std::int64_t{1} << 31) + 1), "2.00G");
  EXPECT_EQ(binary_size(2796032), "2796032") << "all digits where there is room";
}

TEST(Cells, LinesBreakAtSpaces) {
  const std::string text = "one two three four five six seven eight";
  EXPECT_EQ(wrapped(text, "  ", 13), "one two three\n  four five\n  six seven\n  eight\n");
  EXPECT_EQ(wrapped(text, "", 100), text + "\n");
  EXPECT_EQ(wrapped("a_word_that_is_too_long b", "  ", 10), "a_word_that_is_too_long\n  b\n");
  EXPECT_EQ(wrapped("padded   cells", "", 100), "padded   cells\n");
  EXPECT_EQ(wrapped("  1. first", "    ", 6), "  1.\n    first\n");
}

TEST(Cells, OneThingIsNoPlural) {
  EXPECT_EQ(quantity(1, "rank"), "1 rank");
  EXPECT_EQ(quantity(0, "rank") + ", " + quantity(2, "rank"), "0 ranks, 2 ranks");
}

TEST(Cells, CharactersCountAndNotBytes) { EXPECT_EQ(wrapped("ä · ö ü", "", 7), "ä · ö ü\n"); }

}  // namespace
