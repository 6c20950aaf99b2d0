// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/conditions.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "collectives/executors/control_group.hpp"
#include "collectives/executors/timing.hpp"
#include "harness/machine/system.hpp"

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

/// `quota`, or nothing if it is no limit.
std::optional<double> known(double quota) {
  return std::isfinite(quota) ? std::optional(quota) : std::nullopt;
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

std::string cores_in_words(int cores, std::optional<double> quota) {
  const std::string told = fmt::format("{} core{}", cores, cores == 1 ? "" : "s");
  return quota && *quota < cores ? fmt::format("{:.4g} of {} (quota)", *quota, told) : told;
}

std::string cores_in_words(const Cores& cores) {
  return cores_in_words(static_cast<int>(cores.physical.size()), known(cores.quota));
}

HostLoad::HostLoad(const Team& team) : cores_(usable_cores(team)), threads_(cores_.hardware_threads()) {
  begin_case();
  if (const auto now = read(team)) readings_.push_back(*now);
}

std::optional<HostLoad::Reading> HostLoad::read(const Team& team) const {
  std::array of_processes{seconds_of_this_process()};
  team.sum(of_processes);
  const auto busy = busy_seconds(core_ticks(), threads_);
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
  return std::clamp(others / seconds, 0.0, static_cast<double>(threads_.size()));
}

void HostLoad::begin_case() { stops_before_ = processor_quota().stops; }

Conditions HostLoad::conditions(const Team& team, int threads_per_rank) {
  std::size_t hosts = 0;
  Conditions found;
  found.busy_threads = most_on_a_host(team, hosts) * threads_per_rank;
  found.cores = static_cast<int>(team.min(static_cast<double>(cores_.physical.size())));
  found.quota = known(team.min(cores_.quota));
  found.throttled =
      static_cast<std::int64_t>(team.max(static_cast<double>(processor_quota().stops - stops_before_)));
  const std::optional<double> load = other_load(team);
  if (hosts == 1) found.other_load = load;
  return found;
}

}  // namespace baton
