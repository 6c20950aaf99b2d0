// SPDX-License-Identifier: Apache-2.0
#include "harness/process/conditions.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "collectives/executors/timing.hpp"
#include "harness/process/system.hpp"

namespace baton {
namespace {

std::vector<int> cores_of(pid_t process) {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(process, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

std::int64_t nanoseconds_of_this_process() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto nanoseconds = [](const timeval& time) { return 1000 * (1000000 * time.tv_sec + time.tv_usec); };
  return nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime);
}

std::string text_of(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The most members of `team` that share a host; `hosts` becomes the number of hosts.
int most_on_a_host(const Team& team, std::size_t& hosts) {
  std::map<double, int> members;
  int most = 0;
  for (const auto& row : team.gather({static_cast<double>(host_number())}))
    most = std::max(most, ++members[row.front()]);
  hosts = members.size();
  return most;
}

}  // namespace

std::vector<int> cores_of_launch() {
  std::vector<int> cores = cores_of(getppid());
  const std::vector<int> own = cores_of(0);
  return cores.size() > own.size() ? cores : own;
}

std::optional<std::int64_t> busy_nanoseconds(const std::string& stat, const std::vector<int>& cores) {
  const std::int64_t tick = 1000000000 / sysconf(_SC_CLK_TCK);
  std::istringstream lines(stat);
  std::int64_t ticks = 0;
  std::size_t found = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name.size() < 4 || name.rfind("cpu", 0) != 0) continue;
    if (!std::binary_search(cores.begin(), cores.end(), std::atoi(name.c_str() + 3))) continue;
    std::int64_t user = 0, nice = 0, system = 0;
    if (words >> user >> nice >> system) ++found;
    ticks += user + nice + system;
  }
  if (found == 0 || found < cores.size()) return std::nullopt;
  return ticks * tick;
}

HostLoad::HostLoad(const Team& team) : cores_(cores_of_launch()) {
  if (const auto now = read(team)) readings_.push_back(*now);
}

std::optional<HostLoad::Reading> HostLoad::read(const Team& team) const {
  const std::int64_t of_processes = team.sum(nanoseconds_of_this_process());
  const auto busy = busy_nanoseconds(text_of("/proc/stat"), cores_);
  if (!busy) return std::nullopt;
  return Reading{monotonic_seconds(), *busy, of_processes};
}

std::optional<double> HostLoad::other_load(const Team& team) {
  constexpr double window = 1;  // seconds; the kernel counts in ticks of 10 ms
  const auto now = read(team);
  if (!now) return std::nullopt;
  readings_.push_back(*now);
  while (readings_.size() > 2 && readings_[1].seconds < now->seconds - window) readings_.pop_front();
  const Reading& before = readings_.front();
  const double seconds = now->seconds - before.seconds;
  if (seconds < window / 4) return std::nullopt;
  const auto others =
      static_cast<double>(now->busy - before.busy - (now->of_processes - before.of_processes)) * 1e-9;
  return std::clamp(others / seconds, 0.0, static_cast<double>(cores_.size()));
}

Conditions HostLoad::conditions(const Team& team, int threads_a_rank) {
  std::size_t hosts = 0;
  Conditions found;
  found.busy_threads = most_on_a_host(team, hosts) * threads_a_rank;
  found.cores = static_cast<int>(-team.max(-static_cast<double>(cores_.size())));
  const std::optional<double> load = other_load(team);
  if (hosts == 1) found.other_load = load;
  return found;
}

}  // namespace baton
