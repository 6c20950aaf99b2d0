// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/cores.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwloc.h>

#include "collectives/schedule/errors.hpp"
#include "harness/machine/conditions.hpp"

namespace baton::doctor {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

/// The XML of a machine in hwloc's words, such as "pack:2 l3:2 core:4 pu:2".
std::string xml_of(const char* words) {
  hwloc_topology_t topology = nullptr;
  hwloc_topology_init(&topology);
  EXPECT_EQ(hwloc_topology_set_synthetic(topology, words), 0) << words;
  hwloc_topology_load(topology);
  char* text = nullptr;
  int length = 0;
  hwloc_topology_export_xmlbuffer(topology, &text, &length, 0);
  std::string xml(text);
  hwloc_free_xmlbuffer(topology, text);
  hwloc_topology_destroy(topology);
  return xml;
}

TEST(Cores, HaveTheirPlaces) {
  const auto cores = cores_in(xml_of("pack:2 [numa] l3:2 l2:4 core:1 pu:2"));
  ASSERT_EQ(cores.size(), 32u);
  const Core& one = cores[21];  // a thread of the second package's first cache
  EXPECT_EQ(one.number, 21);
  EXPECT_EQ(one.physical, 20);
  EXPECT_EQ(one.package, 1);
  EXPECT_EQ(one.cache, 16) << "the cache that most cores share";
  EXPECT_EQ(one.node, 1);
  EXPECT_EQ(cores[24].cache, 24) << "the second cache of the second package";
}

TEST(Cores, AreInTheOrderOfTheirNumbers) {
  // Threads of a core are numbered half the machine apart, as on most servers.
  const auto cores = cores_in(xml_of("pack:1 core:4 pu:2(indexes=0,4,1,5,2,6,3,7)"));
  ASSERT_EQ(cores.size(), 8u);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(cores[i].number, i);
    EXPECT_EQ(cores[i].physical, i % 4);
    EXPECT_EQ(cores[i].cache, -1) << "not told";
  }
}

TEST(Cores, OfThisHostAreThoseThatItMayUseAndMore) {
  const std::string xml = host_xml();
  std::vector<int> numbers;
  for (const Core& core : cores_in(xml)) numbers.push_back(core.number);
  for (const int allowed : allowed_hardware_threads()) EXPECT_THAT(numbers, Contains(allowed));
  EXPECT_THAT(xml, HasSubstr("<topology"));
  for (const char* secret : {"HostName", "Serial", "UUID", "Address"})
    EXPECT_THAT(xml, Not(HasSubstr(secret)));
}

TEST(Cores, OfAnotherTextAreRefused) {
  EXPECT_THROW(cores_in("no XML"), SystemError);
  EXPECT_THROW(cores_in(""), SystemError);
}

}  // namespace
}  // namespace baton::doctor
