// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/cores.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwloc.h>
#include <stdlib.h>

#include "tests/scratch_folder.hpp"

namespace baton {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::SizeIs;

/// Lets hwloc find a machine in its words, such as "pack:2 core:2 pu:2", in place of this host.
class MadeUpHost {
 public:
  explicit MadeUpHost(const char* words) {
    hwloc_topology_t topology = nullptr;
    hwloc_topology_init(&topology);
    EXPECT_EQ(hwloc_topology_set_synthetic(topology, words), 0) << words;
    hwloc_topology_load(topology);
    EXPECT_EQ(hwloc_topology_export_xml(topology, folder_.file("host.xml").c_str(), 0), 0);
    hwloc_topology_destroy(topology);
    setenv("HWLOC_XMLFILE", folder_.file("host.xml").c_str(), 1);
  }
  ~MadeUpHost() { unsetenv("HWLOC_XMLFILE"); }
  MadeUpHost(const MadeUpHost&) = delete;
  MadeUpHost& operator=(const MadeUpHost&) = delete;

 private:
  const ScratchFolder folder_;
};

Cores some(int cores, double quota = std::numeric_limits<double>::infinity()) {
  Cores made{.physical = {}, .quota = quota};
  for (int core = 0; core < cores; ++core) made.physical[core] = {core};
  return made;
}

TEST(Cores, AreFoundWithTheirHardwareThreads) {
  const MadeUpHost host("pack:2 core:2 pu:2");
  EXPECT_THAT(places_of_cores(), ElementsAre(Pair(0, 0), Pair(1, 0), Pair(2, 1), Pair(3, 1), Pair(4, 2),
                                             Pair(5, 2), Pair(6, 3), Pair(7, 3)));
}

TEST(Cores, HaveHardwareThreadsThatNeedNotBeNeighbours) {
  const MadeUpHost host("core:2 pu:2(indexes=0,2,1,3)");
  EXPECT_THAT(by_core({0, 1, 2, 3}, places_of_cores()),
              ElementsAre(Pair(0, ElementsAre(0, 2)), Pair(1, ElementsAre(1, 3))));
}

TEST(Cores, CountOnceWhereOneOfTwoHardwareThreadsMayBeUsed) {
  const std::map<int, int> place_of{{0, 0}, {1, 0}, {2, 1}, {3, 1}};
  EXPECT_THAT(by_core({1, 2, 3}, place_of), ElementsAre(Pair(0, ElementsAre(1)), Pair(1, ElementsAre(2, 3))));
  EXPECT_THAT(by_core({0, 9, 8}, place_of), SizeIs(3)) << "8 and 9 are not known";
}

TEST(Cores, CountNoPartOfOneThatAQuotaAllows) {
  EXPECT_EQ(some(4).count(), 4);
  EXPECT_EQ(some(4, 8).count(), 4);
  EXPECT_EQ(some(4, 2).count(), 2);
  EXPECT_EQ(some(4, 1.5).count(), 1);
  EXPECT_EQ(some(4, 0.5).count(), 1) << "one rank runs everywhere";
  EXPECT_EQ(some(0).count(), 1) << "the system does not tell";
}

TEST(Cores, OfThisProcessAreWithinItsMask) {
  EXPECT_EQ(usable_cores().hardware_threads(), allowed_hardware_threads());
  EXPECT_EQ(usable_cores(Team()).hardware_threads(), allowed_hardware_threads());
  EXPECT_LE(cores_of_rank(Team()), usable_cores().count()) << "which is 1 for any quota";
}

Cores on(std::map<int, std::vector<int>> physical, double quota = std::numeric_limits<double>::infinity()) {
  return {.physical = std::move(physical), .quota = quota};
}

TEST(Cores, OfARankAreItsOwnWhereOthersHaveOthers) {
  EXPECT_EQ(own_cores(on({{0, {0, 4}}}), {}), 1) << "two hardware threads are one core";
  EXPECT_EQ(own_cores(on({{0, {0}}, {1, {1}}}), {on({{2, {2}}, {3, {3}}})}), 2);
  EXPECT_EQ(own_cores(on({{0, {0}}, {1, {1}}}), {on({{0, {0}}, {1, {1}}})}), 1) << "none is bound";
}

TEST(Cores, OfARankAreNoneWhereItSharesItsOnlyOne) {
  EXPECT_EQ(own_cores(on({{0, {0}}}), {on({{0, {4}}})}), 0) << "each on a hardware thread of it";
  const std::vector<Cores> seven(7, on({{0, {0}}, {1, {1}}}));
  EXPECT_EQ(own_cores(on({{0, {0}}, {1, {1}}}), seven), 0) << "eight ranks in a cpuset of two cores";
  EXPECT_EQ(own_cores(on({{0, {0}}}, 1.5), {on({{1, {1}}})}), 0) << "a quota for less than both";
}

TEST(Cores, OfSeveralRanksAreDivided) {
  const int cores = usable_cores().count();
  EXPECT_EQ(cores_for_each(1), cores);
  EXPECT_EQ(cores_for_each(cores), 1);
  EXPECT_EQ(cores_for_each(cores + 1), 0);
}

}  // namespace
}  // namespace baton
