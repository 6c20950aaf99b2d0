// SPDX-License-Identifier: Apache-2.0
// The cores of this host: those that a process may use, and the time that each was busy.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <vector>

namespace baton {

/// The cores that a process may run on, ascending; 0 is this process. Empty if the system does not
/// tell.
std::vector<int> allowed_cores(int process = 0);

/// The cores that a launch may use: those of the process that started this one, since a launcher
/// binds each rank to some of its own.
std::vector<int> cores_of_launch();

/// The time of a core since the start of the system, in ticks. Interrupts count as busy; time that
/// a hypervisor gave to others is stolen.
struct CoreTicks {
  double busy = 0;
  double stolen = 0;
  double all = 0;
};

/// By the number of the core; empty if the system does not tell. `root` is the folder that /proc is
/// in; a test makes one up.
std::map<int, CoreTicks> core_ticks(const std::filesystem::path& root = "/");

/// Seconds that `cores` were busy; nothing if `ticks` lacks one of them, or if there are none.
std::optional<double> busy_seconds(const std::map<int, CoreTicks>& ticks, const std::vector<int>& cores);

}  // namespace baton
