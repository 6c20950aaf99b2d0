// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/system.hpp"

#include <gtest/gtest.h>

namespace {

using namespace baton;

TEST(Texts, ShowNoControlCharacters) {
  EXPECT_EQ(printable("all\tof\nit\x1b[31m\x7f"), "all\\tof\\nit\\x1b[31m\\x7f");
  EXPECT_EQ(printable("All-Scan \xc2\xb7 H\xc3\xb6rer \xf0\x9f\x98\x80"),
            "All-Scan \xc2\xb7 H\xc3\xb6rer \xf0\x9f\x98\x80");
}

TEST(Texts, ShowNoMarksOfDirection) {
  EXPECT_EQ(printable("a\u202e\u2066b"), "a\\xe2\\x80\\xae\\xe2\\x81\\xa6b");
}

TEST(Texts, ShowBrokenUtf8AsBytes) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("a\xc3"), "a\\xc3") << "cut";
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b") << "a control character of 8 bits";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
}

TEST(Texts, ALongOneLosesItsMiddle) {
  const std::string line = one_line("--heads: " + std::string(100000, '9') + " is not in range", 100);
  EXPECT_LE(line.size(), 100u);
  EXPECT_EQ(line.substr(0, 9), "--heads: ");
  EXPECT_TRUE(line.ends_with(" is not in range"));
  std::string umlauts;
  for (int i = 0; i < 1000; ++i) umlauts += "\xc3\xb6";
  EXPECT_EQ(printable(one_line(umlauts, 99)), one_line(umlauts, 99)) << "cut between characters";
  EXPECT_EQ(one_line("short", 10), "short");
}

}  // namespace
