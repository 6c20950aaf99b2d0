// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/cores.hpp"

#include <hwloc.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <type_traits>

#include "collectives/executors/control_group.hpp"
#include "collectives/executors/launcher.hpp"

namespace baton {
namespace {

constexpr const char* bind_to = "BATON_CORES_PER_RANK";

cpu_set_t mask_of(int process) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(process, sizeof allowed, &allowed) != 0) CPU_ZERO(&allowed);
  return allowed;
}

std::vector<int> threads_in(const cpu_set_t& mask) {
  std::vector<int> threads;
  for (int thread = 0; thread < CPU_SETSIZE; ++thread)
    if (CPU_ISSET(thread, &mask)) threads.push_back(thread);
  return threads;
}

bool is_started_by_baton() { return std::getenv(bind_to) != nullptr; }

/// What this process may use: a launcher that Baton started may use all that Baton may.
cpu_set_t usable_mask() { return mask_of(is_started_by_baton() ? getppid() : 0); }

std::map<int, std::vector<int>> physical(const cpu_set_t& mask) {
  static const std::map<int, int> place_of = places_of_cores();
  return by_core(threads_in(mask), place_of);
}

Cores cores_in(const cpu_set_t& mask) {
  return {.physical = physical(mask), .quota = processor_quota().cores};
}

/// What each rank of this host may run on, its own first.
std::vector<cpu_set_t> masks_of_host(const Team& team, const cpu_set_t& mine) {
  const std::vector<cpu_set_t> all = team.gather(mine);
  const std::vector<std::uint64_t> hosts = team.gather_hosts();
  std::vector<cpu_set_t> found{mine};
  for (int rank = 0; rank < team.size(); ++rank)
    if (rank != team.rank() && hosts[rank] == hosts[team.rank()]) found.push_back(all[rank]);
  return found;
}

}  // namespace

int Cores::count() const {
  const double cores = std::min(static_cast<double>(physical.size()), std::floor(quota));
  return std::max(1, static_cast<int>(cores));
}

std::vector<int> Cores::hardware_threads() const {
  std::vector<int> all;
  for (const auto& [place, threads] : physical) all.insert(all.end(), threads.begin(), threads.end());
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<int> allowed_hardware_threads(int process) { return threads_in(mask_of(process)); }

std::map<int, int> places_of_cores() {
  std::map<int, int> place_of;
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return place_of;
  const std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, decltype(&hwloc_topology_destroy)> owner(
      topology, hwloc_topology_destroy);
  hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  // The component x86 runs on each core of the host, also on cores that this process may not use.
  hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
  if (hwloc_topology_load(topology) != 0) return place_of;
  hwloc_obj_t core = nullptr;
  for (int place = 0; (core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) != nullptr; ++place)
    for (int thread = hwloc_bitmap_first(core->cpuset); thread >= 0;
         thread = hwloc_bitmap_next(core->cpuset, thread))
      place_of[thread] = place;
  return place_of;
}

std::map<int, std::vector<int>> by_core(const std::vector<int>& threads, const std::map<int, int>& place_of) {
  constexpr int after_others = 1 << 20;
  std::map<int, std::vector<int>> cores;
  for (const int thread : threads) {
    const auto found = place_of.find(thread);
    cores[found == place_of.end() ? after_others + thread : found->second].push_back(thread);
  }
  return cores;
}

Cores usable_cores() { return cores_in(usable_mask()); }

Cores usable_cores(const Team& team) {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (const cpu_set_t& mask : masks_of_host(team, usable_mask())) CPU_OR(&all, &all, &mask);
  return cores_in(all);
}

int own_cores(const Cores& mine, const std::vector<Cores>& others) {
  const double sharing = 1 + static_cast<double>(std::ranges::count_if(others, [&](const Cores& other) {
                           return std::ranges::any_of(mine.physical, [&](const auto& core) {
                             return other.physical.contains(core.first);
                           });
                         }));
  const double of_quota = mine.quota / (1 + static_cast<double>(others.size()));
  return static_cast<int>(std::min(static_cast<double>(mine.physical.size()) / sharing, of_quota));
}

int cores_of_rank(const Team& team) {
  const std::vector<cpu_set_t> masks = masks_of_host(team, mask_of(0));
  std::vector<Cores> others;
  for (std::size_t rank = 1; rank < masks.size(); ++rank)
    others.push_back({.physical = physical(masks[rank])});
  return own_cores(cores_in(masks.front()), others);
}

int cores_for_each(int ranks) {
  const Cores mine = usable_cores();
  const bool is_bound = !launcher().bootstrap.empty() && !is_started_by_baton() &&
                        mine.physical.size() < physical(mask_of(getppid())).size();
  return is_bound ? mine.count() : mine.count() / std::max(ranks, 1);
}

std::string binding_variable(int cores) { return bind_to + ("=" + std::to_string(cores)); }

void bind_rank() {
  const int cores = is_started_by_baton() ? std::atoi(std::getenv(bind_to)) : 0;
  const std::size_t first = static_cast<std::size_t>(launcher().rank) * static_cast<std::size_t>(cores);
  cpu_set_t own;
  CPU_ZERO(&own);
  std::size_t at = 0;
  for (const auto& [place, threads] : usable_cores().physical)
    if (const std::size_t index = at++; index >= first && index < first + static_cast<std::size_t>(cores))
      for (const int thread : threads) CPU_SET(thread, &own);
  if (CPU_COUNT(&own) > 0) sched_setaffinity(0, sizeof own, &own);
}

}  // namespace baton
