// SPDX-License-Identifier: Apache-2.0
// The control groups of this process, by which containers, batch systems and services limit the
// processor time and the memory of their processes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace baton {

/// The folders of the control groups whose limits of `controller`, such as "cpu" or "memory", hold
/// for this process: its own group first, then each group around it that can be seen here. Both
/// versions of control groups are known; their files have different names. Empty where there are
/// none. `root` is the folder that /proc and /sys are in; a test makes one up.
std::vector<std::filesystem::path> control_groups(const std::string& controller,
                                                  const std::filesystem::path& root = "/");

/// The number at the beginning of a file; nothing if there is no such file, or if it has a word
/// there, such as "max".
std::optional<std::int64_t> number_in_file(const std::filesystem::path& file);

/// A limit of the processor time that a process and others of its control groups use together.
struct Quota {
  /// Cores whose whole time it allows, such as 1.5; infinity without a limit.
  double cores = std::numeric_limits<double>::infinity();
  /// How often it has held processes of the groups back so far.
  std::int64_t stops = 0;
};

/// The quota of this process: the least one of its groups, and the stops of all of them.
Quota processor_quota(const std::filesystem::path& root = "/");

}  // namespace baton
