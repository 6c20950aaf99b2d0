// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/texts.hpp"

#include <gtest/gtest.h>

namespace {

using namespace baton;

TEST(Nearest, IsTheKnownWordOfFewestEdits) {
  EXPECT_EQ(nearest("lasp3", {"zeco", "lasp1"}), "lasp1");
  EXPECT_EQ(nearest("LASP1", {"zeco", "lasp1"}), "lasp1") << "capitals are no edits";
  EXPECT_EQ(nearest("dp", {"DP", "full"}), "DP");
  EXPECT_EQ(nearest("something", {"zeco", "lasp1"}), "");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(ShownCharacter, HasTheBytesOfOneCharacter) {
  EXPECT_EQ(shown_character("a", 0), 1u);
  EXPECT_EQ(shown_character("\u00f6", 0), 2u);
  EXPECT_EQ(shown_character("\u20ac", 0), 3u);
  EXPECT_EQ(shown_character("\U0001f600", 0), 4u);
}

TEST(ShownCharacter, IsNoneOfThoseThatATerminalObeys) {
  for (const char* hidden : {"\n", "\x1b", "\x7f", "\xc2\x85", "\u061c", "\u200e", "\u200f", "\u2028",
                             "\u2029", "\u202a", "\u202e", "\u2066", "\u2069"})
    EXPECT_EQ(shown_character(hidden, 0), 0u) << hidden;
  for (const char* shown : {"\u00a0", "\u061b", "\u2010", "\u2027", "\u2030", "\u2065", "\u206a"})
    EXPECT_GT(shown_character(shown, 0), 0u) << shown;
}

}  // namespace
