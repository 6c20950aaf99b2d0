// SPDX-License-Identifier: Apache-2.0
// The cores, caches and memory of a host, as hwloc finds them.
#pragma once

#include <string>
#include <vector>

#include "harness/doctor/readings.hpp"

namespace baton::doctor {

/// This host's cores, caches, NUMA nodes and PCI devices as hwloc's XML, which `lstopo -i FILE`
/// draws. It has no name, serial number or address of the host. Throws SystemError if hwloc fails.
std::string host_xml();

/// The cores in hwloc's XML of a host, in ascending order, with their packages, caches and NUMA
/// nodes. Throws SystemError if `xml` is no such XML.
std::vector<Core> cores_in(const std::string& xml);

}  // namespace baton::doctor
