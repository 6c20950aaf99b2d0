// SPDX-License-Identifier: Apache-2.0
// What Linux tells of a host in /proc and /sys. `root` is the folder that both are in; a test makes
// one up.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/doctor/readings.hpp"
#include "harness/machine/conditions.hpp"

namespace baton::doctor {

namespace fs = std::filesystem;

/// Appends to `shares` of each core the part that `ticks` are of the time between two readings.
/// Skips a core that one of the readings lacks, or for which no time passed.
void add_shares(std::vector<Core>& cores, const std::map<int, CoreTicks>& before,
                const std::map<int, CoreTicks>& after, Repeats Core::*shares, double CoreTicks::*ticks);

/// The processor time of a process since its start.
struct ProcessTime {
  std::string name;
  double seconds = 0;
};

/// The processor times of all processes of this host, by process id.
std::map<int, ProcessTime> process_times(const fs::path& root = "/");

/// Reads the clock of a core into the readings of the rank that runs on it.
void add_clock(RankReadings& rank, int core, const fs::path& root = "/");

/// How often heat has slowed a core since the start of the system.
std::int64_t heat_events_of(int core, const fs::path& root = "/");

/// The facts of this host that do not change: cores, GPUs, clock source, shared memory.
HostReadings facts_of_host(const fs::path& root = "/");

/// The core that this process runs on; -1 if unknown. `node_of` is the NUMA node of `memory`.
int current_core();
int node_of(const void* memory);

}  // namespace baton::doctor
