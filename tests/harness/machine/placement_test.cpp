// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace baton;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Placement, HostsThatAreFilledOneAfterTheOtherAreNodes) {
  const Placement hosts({7, 7, 3, 3, 9, 9});
  EXPECT_EQ(hosts.hosts(), 3);
  EXPECT_EQ(hosts.ranks_per_node(), 2);
  EXPECT_EQ(hosts.host_of(4), 2);
  EXPECT_EQ(hosts.words(), "3 hosts of 2");
  EXPECT_THAT(hosts.irregular(), IsEmpty());
}

TEST(Placement, TheLastHostMayHaveFewer) {
  const Placement hosts({7, 7, 7, 3});
  EXPECT_EQ(hosts.ranks_per_node(), 3);
  EXPECT_EQ(hosts.words(), "2 hosts (ranks 0-2, 3)");
  EXPECT_THAT(hosts.irregular(), IsEmpty());
}

TEST(Placement, OneHostIsNoNodeOfItsOwn) {
  EXPECT_EQ(Placement({5, 5, 5}).ranks_per_node(), 0);
  EXPECT_THAT(Placement({5, 5, 5}).irregular(), IsEmpty());
  EXPECT_THAT(Placement({5, 5, 5}).across(), IsEmpty());
}

TEST(Placement, ARankAHostIsANodeOfOne) {
  const Placement hosts({1, 2, 3});
  EXPECT_EQ(hosts.ranks_per_node(), 1);
  EXPECT_THAT(hosts.within(), IsEmpty());
  EXPECT_THAT(hosts.across(), ElementsAre(ElementsAre(0, 1, 2)));
}

TEST(Placement, RanksThatAreDealtOutAreNamed) {
  const Placement hosts({1, 2, 1, 2});
  EXPECT_EQ(hosts.ranks_per_node(), 0);
  EXPECT_THAT(hosts.irregular(), HasSubstr("2 hosts (ranks 0 2, 1 3): they do not fill"));
  EXPECT_THAT(hosts.within(), ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
  EXPECT_THAT(hosts.across(), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
}

TEST(Placement, HostsThatAreFilledUnevenlyAreNamed) {
  EXPECT_THAT(Placement({1, 2, 2, 3}).irregular(), HasSubstr("(ranks 0, 1-2, 3)"));
  EXPECT_THAT(Placement({1, 2, 2}).irregular(), HasSubstr("(ranks 0, 1-2)"));
}

TEST(Placement, RailsEndWhereAHostHasNoMoreRanks) {
  EXPECT_THAT(Placement({1, 1, 1, 2, 2, 3}).across(), ElementsAre(ElementsAre(0, 3, 5), ElementsAre(1, 4)));
}

TEST(Carrier, IsTheInterfaceWhoseBytesRoseMost) {
  EXPECT_EQ(carrier({{"eth0", 100}, {"lo", 5}}, {{"eth0", 400}, {"lo", 900}, {"ib0", 200}}, 300), "lo");
  EXPECT_EQ(carrier({{"eth0", 100}}, {{"eth0", 399}}, 300), "");
  EXPECT_EQ(carrier({}, interface_bytes(), INT64_MAX), "");
}

TEST(Carrier, LoopbackIsAnInterfaceOfEveryHost) {
  EXPECT_THAT(interface_bytes(), testing::Contains(testing::Key("lo")));
}

}  // namespace
