// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/listing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace baton;
using testing::HasSubstr;

TEST(Listing, ShowsSlicesPeersDependenciesAndLines) {
  Schedule s(1, 3);
  const Slice own = s.input("own", 8), into = s.output("into", 8);
  s.recv(into.part(0, 4), 0);
  s.copy(into.part(4, 4), into.part(0, 4));
  {
    const Region region(s, "inner");
    s.send(2, own);
  }
  const std::string lines = text(s);
  EXPECT_THAT(lines, HasSubstr("rank 1 of 3"));
  EXPECT_THAT(lines, HasSubstr("into[0:4) from rank 0"));
  EXPECT_THAT(lines, HasSubstr("into[4:8) from into[0:4)"));
  EXPECT_THAT(lines, HasSubstr("after 0"));
  EXPECT_THAT(lines, HasSubstr("own[0:8) to rank 2"));
  EXPECT_THAT(lines, HasSubstr("listing_test.cpp:"));
  EXPECT_THAT(lines, HasSubstr("in inner"));
}

}  // namespace
