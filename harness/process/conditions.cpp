// SPDX-License-Identifier: Apache-2.0
#include "harness/process/conditions.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "collectives/executors/timing.hpp"
#include "harness/process/system.hpp"

namespace baton {
namespace {

double seconds_of_this_process() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
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

/// Moves this thread to `core`, and lets it run on all of `cores`. A failure leaves it where it is.
void move_to(int core, const std::vector<int>& cores) {
  cpu_set_t one, all;
  CPU_ZERO(&one);
  CPU_ZERO(&all);
  CPU_SET(core, &one);
  for (const int other : cores) CPU_SET(other, &all);
  sched_setaffinity(0, sizeof one, &one);
  sched_setaffinity(0, sizeof all, &all);
}

}  // namespace

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

void run_on(const std::vector<int>& cores, int count, const std::function<void(int)>& body) {
  std::atomic<int> next = 0;
  const auto work = [&] {
    for (int i = next++; i < count; i = next++) body(i);
  };
  if (cores.size() < 2 || count < 2) return work();
  std::vector<std::thread> workers;
  for (std::size_t thread = 0; thread < std::min<std::size_t>(cores.size(), count); ++thread)
    workers.emplace_back([&, core = cores[thread]] {
      move_to(core, cores);
      work();
    });
  for (std::thread& worker : workers) worker.join();
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

HostLoad::HostLoad(const Team& team) : cores_(cores_of_launch()) {
  if (const auto now = read(team)) readings_.push_back(*now);
}

std::optional<HostLoad::Reading> HostLoad::read(const Team& team) const {
  std::array of_processes{seconds_of_this_process()};
  team.sum(of_processes);
  const auto busy = busy_seconds(core_ticks(), cores_);
  if (!busy) return std::nullopt;
  return Reading{monotonic_seconds(), *busy, of_processes[0]};
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
  const double others = now->busy - before.busy - (now->of_processes - before.of_processes);
  return std::clamp(others / seconds, 0.0, static_cast<double>(cores_.size()));
}

Conditions HostLoad::conditions(const Team& team, int threads_per_rank) {
  std::size_t hosts = 0;
  Conditions found;
  found.busy_threads = most_on_a_host(team, hosts) * threads_per_rank;
  found.cores = static_cast<int>(-team.max(-static_cast<double>(cores_.size())));
  const std::optional<double> load = other_load(team);
  if (hosts == 1) found.other_load = load;
  return found;
}

}  // namespace baton
