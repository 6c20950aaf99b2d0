// SPDX-License-Identifier: Apache-2.0
#include "harness/process/cores.hpp"

#include <sched.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace baton {

std::vector<int> allowed_cores(int process) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::vector<int> cores;
  if (sched_getaffinity(process, sizeof allowed, &allowed) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  return cores;
}

std::vector<int> cores_of_launch() {
  std::vector<int> cores = allowed_cores(getppid());
  const std::vector<int> own = allowed_cores();
  return cores.size() > own.size() ? cores : own;
}

std::map<int, CoreTicks> core_ticks(const std::filesystem::path& root) {
  std::map<int, CoreTicks> cores;
  std::ifstream file(root / "proc/stat");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("cpu", 0) != 0 || line.size() < 4 || line[3] == ' ') continue;
    std::istringstream words(line.substr(3));
    int number = 0;
    double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft = 0, stolen = 0;
    words >> number >> user >> nice >> system >> idle >> waiting >> interrupts >> soft >> stolen;
    const double busy = user + nice + system + interrupts + soft;
    cores[number] = {.busy = busy, .stolen = stolen, .all = busy + idle + waiting + stolen};
  }
  return cores;
}

std::optional<double> busy_seconds(const std::map<int, CoreTicks>& ticks, const std::vector<int>& cores) {
  double busy = 0;
  for (const int core : cores) {
    const auto found = ticks.find(core);
    if (found == ticks.end()) return std::nullopt;
    busy += found->second.busy;
  }
  if (cores.empty()) return std::nullopt;
  return busy / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace baton
