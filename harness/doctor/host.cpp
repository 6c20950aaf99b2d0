// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/host.hpp"

#include <sched.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>
#include <utility>

#include "collectives/executors/control_group.hpp"
#include "harness/doctor/cores.hpp"

namespace baton::doctor {
namespace {

/// The first line of a file; empty if it cannot be read.
std::string line_of(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The number at the start of `text`; `otherwise` if there is none.
double number_in(const std::string& text, double otherwise) {
  double value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

double number_of(const fs::path& path, double otherwise) { return number_in(line_of(path), otherwise); }

fs::path folder_of(int core, const fs::path& root) {
  return root / "sys/devices/system/cpu" / ("cpu" + std::to_string(core));
}

/// The numbered entries of a folder, such as the processes of /proc.
std::vector<int> numbered_entries(const fs::path& folder) {
  std::vector<int> numbers;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (const double number = number_in(entry.path().filename(), -1); number >= 0)
      numbers.push_back(static_cast<int>(number));
  return numbers;
}

}  // namespace

void add_shares(std::vector<Core>& cores, const std::map<int, CoreTicks>& before,
                const std::map<int, CoreTicks>& after, Repeats Core::*shares, double CoreTicks::*ticks) {
  for (Core& core : cores) {
    const auto from = before.find(core.number), to = after.find(core.number);
    if (from == before.end() || to == after.end()) continue;
    const double all = to->second.all - from->second.all;
    if (all > 0) (core.*shares).push_back((to->second.*ticks - from->second.*ticks) / all);
  }
}

std::map<int, ProcessTime> process_times(const fs::path& root) {
  std::map<int, ProcessTime> processes;
  const double ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  for (const int number : numbered_entries(root / "proc")) {
    const std::string line = line_of(root / "proc" / std::to_string(number) / "stat");
    // The name stands in parentheses and may contain some; the 12th and 13th words after it are
    // the ticks of the program and of the kernel for it.
    const auto begin = line.find('('), end = line.rfind(')');
    if (begin == std::string::npos || end == std::string::npos || end < begin) continue;
    std::istringstream words(line.substr(end + 1));
    std::string skipped;
    for (int i = 0; i < 11; ++i) words >> skipped;
    double program = 0, kernel = 0;
    words >> program >> kernel;
    processes[number] = {line.substr(begin + 1, end - begin - 1), (program + kernel) / ticks_per_second};
  }
  return processes;
}

void add_clock(RankReadings& rank, int core, const fs::path& root) {
  const fs::path clock = folder_of(core, root) / "cpufreq";
  const auto mhz = [&](const char* name) { return number_of(clock / name, 0) / 1000; };
  if (const double now = mhz("scaling_cur_freq"); now > 0) rank.clock_mhz.push_back(now);
  rank.base_mhz = mhz("base_frequency");
  rank.most_mhz = mhz("cpuinfo_max_freq");
  rank.allowed_mhz = mhz("scaling_max_freq");
  rank.governor = line_of(clock / "scaling_governor");
}

std::int64_t heat_events_of(int core, const fs::path& root) {
  return static_cast<std::int64_t>(
      number_of(folder_of(core, root) / "thermal_throttle/core_throttle_count", 0));
}

HostReadings facts_of_host(const fs::path& root) {
  struct statvfs shared {};
  const bool has_shared = statvfs((root / "dev/shm").c_str(), &shared) == 0;
  std::error_code ignored;
  const auto gpus = fs::directory_iterator(root / "proc/driver/nvidia/gpus", ignored);
  std::string topology = host_xml();
  std::vector<Core> cores = cores_in(topology);
  const double allowed = processor_quota(root).cores;
  return {.cores = std::move(cores),
          .topology = std::move(topology),
          .quota_cores = std::isfinite(allowed) ? allowed : 0,
          .gpus = static_cast<int>(std::distance(gpus, fs::directory_iterator())),
          .clock_source = line_of(root / "sys/devices/system/clocksource/clocksource0/current_clocksource"),
          .shared_memory_bytes = has_shared ? static_cast<std::int64_t>(shared.f_bavail) *
                                                  static_cast<std::int64_t>(shared.f_frsize)
                                            : -1};
}

int current_core() { return sched_getcpu(); }

int node_of(const void* memory) {
  constexpr int of_address = 3;  // MPOL_F_NODE | MPOL_F_ADDR of the system's numaif.h
  int node = -1;
  return syscall(SYS_get_mempolicy, &node, nullptr, 0, memory, of_address) == 0 ? node : -1;
}

}  // namespace baton::doctor
