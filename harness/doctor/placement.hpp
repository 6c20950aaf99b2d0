// SPDX-License-Identifier: Apache-2.0
// Where ranks may run, by their readings: on which cores, beside whom, how near to their memory;
// and who else uses these cores.
#pragma once

#include <set>
#include <vector>

#include "harness/doctor/findings.hpp"

namespace baton::doctor {

/// The ranks of a host, ascending.
std::vector<const RankReadings*> ranks_on(const Readings& readings, const HostReadings& host);

/// The logical cores that any of the ranks may run on.
std::set<int> cores_of(const std::vector<const RankReadings*>& ranks);

/// The physical cores, by their lowest logical core, that `cores` belong to.
std::set<int> physical_cores(const HostReadings& host, const std::set<int>& cores);
/// The physical cores, by their lowest logical core, that `rank` may run on.
std::set<int> physical_cores(const HostReadings& host, const RankReadings& rank);

/// The core with this number; null if there is none.
const Core* find_core(const HostReadings& host, int number);

/// The core that a bound rank runs on: its lowest one; null if it may use several physical cores.
const Core* own_core(const HostReadings& host, const RankReadings& rank);

/// True if a host has more ranks than cores that they may use, so that ranks wait for one another.
bool is_crowded(const Readings& readings, const HostReadings& host);
/// True if any host has more ranks than cores that they may use.
bool is_crowded(const Readings& readings);

/// How far apart two ranks are: 0 in one cache, 1 in one package, 2 on one host or unknown there, 3
/// on different hosts. Accelerators are either on one host or not.
int distance(const Readings& readings, const LinkReadings& links, const PairReadings& pair);

/// Findings about ranks that share cores, may move, or have their memory elsewhere.
std::vector<Finding> judge_binding(const Readings& readings);

/// Findings about the load by others on the cores of ranks: processes, control groups, a
/// hypervisor.
std::vector<Finding> judge_load(const Readings& readings);

}  // namespace baton::doctor
