// SPDX-License-Identifier: Apache-2.0
// What Linux tells of a host in /proc and /sys. `root` is the folder that both are in; a test makes
// one up.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/doctor/readings.hpp"
#include "harness/process/conditions.hpp"

namespace baton::doctor {

namespace fs = std::filesystem;

/// Appends to `busy` of each core the part of the time between two readings for which it was busy;
/// `add_stolen` does so for stolen time. Skips a core that one of the readings lacks, or for which
/// no time passed.
void add_busy(std::vector<Core>& cores, const std::map<int, CoreTicks>& before,
              const std::map<int, CoreTicks>& after);
void add_stolen(std::vector<Core>& cores, const std::map<int, CoreTicks>& before,
                const std::map<int, CoreTicks>& after);

/// The processor time of a process since its start.
struct ProcessTime {
  std::string name;
  double seconds = 0;
};

/// The processor times of all processes of this host, by process id.
std::map<int, ProcessTime> process_times(const fs::path& root = "/");

/// The clock of a core in MHz: present, base, highest, and highest allowed; 0 where unknown.
struct CoreClock {
  double now_mhz = 0;
  double base_mhz = 0;
  double most_mhz = 0;
  double allowed_mhz = 0;
  std::string governor;
  /// How often heat has slowed the core since the start of the system.
  std::int64_t heat_events = 0;
};

CoreClock clock_of(int core, const fs::path& root = "/");

/// The facts of this host that do not change: cores, GPUs, clock source, shared memory.
HostReadings facts_of_host(const fs::path& root = "/");

/// The core that this process runs on; -1 if unknown. `node_of` is the NUMA node of `memory`.
int current_core();
int node_of(const void* memory);

}  // namespace baton::doctor
