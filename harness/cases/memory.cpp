// SPDX-License-Identifier: Apache-2.0
//
//   the host         MemAvailable of /proc/meminfo
//   control groups   memory.max, memory.current (version 2); memory.limit_in_bytes,
//                    memory.usage_in_bytes (version 1); pages of files that nobody uses are free
//   a process        /proc/self/limits, which has `ulimit -v` and `ulimit -d`; /proc/self/status
#include "harness/cases/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>

#include "collectives/executors/control_group.hpp"

namespace baton {
namespace {

namespace fs = std::filesystem;

/// The first number after `key` at the beginning of a line; nothing where a word stands there.
std::optional<double> number_after(const fs::path& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const auto at = line.find_first_not_of(" \t:", key.size());
    if (at == std::string::npos || line[at] < '0' || line[at] > '9') return std::nullopt;
    return std::stod(line.substr(at));
  }
  return std::nullopt;
}

/// The least limit of all that were looked at.
class Least {
 public:
  void look_at(std::optional<double> bytes, const std::string& limit) {
    if (bytes && *bytes < found_.bytes) found_ = {std::max(*bytes, 0.0), limit};
  }
  FreeMemory found() const { return found_; }

 private:
  FreeMemory found_{std::numeric_limits<double>::infinity(), ""};
};

void look_at_group(const fs::path& group, Least& least) {
  for (const auto& [most, used, idle] :
       {std::array{"memory.max", "memory.current", "inactive_file "},
        std::array{"memory.high", "memory.current", "inactive_file "},
        std::array{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "}}) {
    const auto limit = number_in_file(group / most);
    if (!limit || *limit < 0) continue;
    const double taken = static_cast<double>(number_in_file(group / used).value_or(0));
    const double unused = number_after(group / "memory.stat", idle).value_or(0);
    const auto bytes = static_cast<double>(*limit);
    least.look_at(bytes - taken + std::min(unused, taken),
                  "memory limit of the control group: " + memory_words(bytes));
  }
}

/// `own` is what the process has of it, in a line of /proc/self/status.
void look_at_process(const fs::path& proc, const char* limit, const char* own, const char* flag,
                     int processes, Least& least) {
  const auto most = number_after(proc / "limits", limit);
  if (!most) return;
  const double has = number_after(proc / "status", own).value_or(0) * 1024;
  least.look_at((*most - has) * processes, fmt::format("ulimit {}: {} a process", flag, memory_words(*most)));
}

}  // namespace

FreeMemory free_memory(int processes, const fs::path& root) {
  Least least;
  if (const auto kibibytes = number_after(root / "proc/meminfo", "MemAvailable"))
    least.look_at(*kibibytes * 1024, "memory of the host");
  for (const fs::path& group : control_groups("memory", root)) look_at_group(group, least);
  const fs::path self = root / "proc/self";
  look_at_process(self, "Max address space", "VmSize", "-v", processes, least);
  look_at_process(self, "Max data size", "VmData", "-d", processes, least);
  return least.found();
}

std::string memory_words(double bytes) {
  if (std::isinf(bytes)) return "no limit";
  return bytes < (1 << 30) ? fmt::format("{:.0f} MiB", bytes / (1 << 20))
                           : fmt::format("{:.1f} GiB", bytes / (1 << 30));
}

}  // namespace baton
