// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/record/cells.hpp"

namespace baton::doctor {

std::vector<const RankReadings*> ranks_on(const Readings& readings, const HostReadings& host) {
  std::vector<const RankReadings*> ranks;
  for (const RankReadings& rank : readings.ranks)
    if (rank.host == host.host) ranks.push_back(&rank);
  return ranks;
}

std::set<int> cores_of(const std::vector<const RankReadings*>& ranks) {
  std::set<int> cores;
  for (const RankReadings* rank : ranks) cores.insert(rank->cores.begin(), rank->cores.end());
  return cores;
}

std::set<int> physical_cores(const HostReadings& host, const std::set<int>& cores) {
  std::set<int> physical;
  for (const int number : cores) {
    const Core* core = find_core(host, number);
    physical.insert(core == nullptr || core->physical < 0 ? number : core->physical);
  }
  return physical;
}

std::set<int> physical_cores(const HostReadings& host, const RankReadings& rank) {
  return physical_cores(host, {rank.cores.begin(), rank.cores.end()});
}

const Core* find_core(const HostReadings& host, int number) {
  const auto found = std::find_if(host.cores.begin(), host.cores.end(),
                                  [&](const Core& core) { return core.number == number; });
  return found == host.cores.end() ? nullptr : &*found;
}

const Core* own_core(const HostReadings& host, const RankReadings& rank) {
  if (rank.cores.empty() || physical_cores(host, rank).size() > 1) return nullptr;
  return find_core(host, *std::min_element(rank.cores.begin(), rank.cores.end()));
}

bool is_crowded(const Readings& readings, const HostReadings& host) {
  const auto ranks = ranks_on(readings, host);
  const std::size_t cores = cores_of(ranks).size();
  return cores > 0 && ranks.size() > cores;
}

bool is_crowded(const Readings& readings) {
  return std::any_of(readings.hosts.begin(), readings.hosts.end(),
                     [&](const HostReadings& host) { return is_crowded(readings, host); });
}

int distance(const Readings& readings, const LinkReadings& links, const PairReadings& pair) {
  const RankReadings &a = readings.ranks.at(pair.from), &b = readings.ranks.at(pair.to);
  if (a.host != b.host) return 3;
  if (links.is_device) return 2;
  const HostReadings& host = readings.host(a.host);
  const Core *one = own_core(host, a), *other = own_core(host, b);
  if (one == nullptr || other == nullptr) return 2;
  if (one->cache >= 0 && one->cache == other->cache) return 0;
  return one->package >= 0 && one->package == other->package ? 1 : 2;
}

namespace {

using Ranks = std::vector<const RankReadings*>;

std::vector<int> numbers_of(const Ranks& ranks) {
  std::vector<int> numbers;
  for (const RankReadings* rank : ranks) numbers.push_back(rank->rank);
  return numbers;
}

Finding crowded(const Readings& readings, const HostReadings& host) {
  const Ranks ranks = ranks_on(readings, host);
  const std::size_t cores = physical_cores(host, cores_of(ranks)).size();
  return {.about = "binding",
          .ranks = numbers_of(ranks),
          .what = fmt::format("{} ranks share {} of a host: they wait for one another, and their times "
                              "prove nothing",
                              ranks.size(), quantity(cores, "core")),
          .advice = fmt::format("take at most {} a host (--ranks)", quantity(cores, "rank"))};
}

bool overlap(const std::set<int>& a, const std::set<int>& b) {
  return std::any_of(a.begin(), a.end(), [&](int core) { return b.contains(core); });
}

/// Ranks that may use several physical cores, if other ranks may use these too or if they are all
/// cores of the host.
Ranks unbound(const HostReadings& host, const Ranks& ranks) {
  Ranks found;
  for (const RankReadings* rank : ranks) {
    const std::set<int> own = physical_cores(host, *rank);
    if (own.size() < 2) continue;
    const bool shares = std::any_of(ranks.begin(), ranks.end(), [&](const RankReadings* other) {
      return other != rank && overlap(own, physical_cores(host, *other));
    });
    if (shares || rank->cores.size() == host.cores.size()) found.push_back(rank);
  }
  return found;
}

void add_unbound(std::vector<Finding>& findings, const HostReadings& host, const Ranks& ranks) {
  const Ranks found = unbound(host, ranks);
  if (found.empty()) return;
  const std::set<int> cores = cores_of(found);
  findings.push_back(
      {.about = "binding",
       .ranks = numbers_of(found),
       .what =
           fmt::format("{} {} not bound to cores of {} own: each may run on {}, and move in between",
                       counted("rank", numbers_of(found)), found.size() == 1 ? "is" : "are",
                       found.size() == 1 ? "its" : "their", counted("core", {cores.begin(), cores.end()})),
       .advice = "let the benches start the ranks (./run bench ...), or give your mpirun --bind-to core"});
}

void add_shared_cores(std::vector<Finding>& findings, const HostReadings& host, const Ranks& ranks) {
  std::map<int, Ranks> by_core;
  for (const RankReadings* rank : ranks)
    if (const std::set<int> own = physical_cores(host, *rank); own.size() == 1)
      by_core[*own.begin()].push_back(rank);
  const std::size_t most = physical_cores(host, cores_of(ranks)).size();
  for (const auto& [core, sharing] : by_core) {
    if (sharing.size() < 2) continue;
    const bool has_threads = cores_of(sharing).size() > 1;
    findings.push_back(
        {.about = "binding",
         .ranks = numbers_of(sharing),
         .what = fmt::format("{} share core {}{}", counted("rank", numbers_of(sharing)), core,
                             has_threads ? ", each on a hyperthread of it or on both" : ""),
         .advice =
             ranks.size() <= most
                 ? std::string("bind each rank to a core of its own: mpirun --map-by core --bind-to core")
                 : fmt::format("take at most {} ranks on this host, one a physical core", most)});
  }
}

void add_far_memory(std::vector<Finding>& findings, const HostReadings& host, const Ranks& ranks) {
  for (const RankReadings* rank : ranks) {
    const Core* core = own_core(host, *rank);
    if (core == nullptr || core->node < 0 || rank->memory_node < 0 || core->node == rank->memory_node)
      continue;
    findings.push_back(
        {.about = "binding",
         .ranks = {rank->rank},
         .what = fmt::format("the memory of rank {} is on NUMA node {}, its core {} on node {}", rank->rank,
                             rank->memory_node, core->number, core->node),
         .advice =
             fmt::format("look whether node {} is out of memory, or whether numactl or the control group "
                         "binds the memory elsewhere",
                         core->node)});
  }
}

}  // namespace

std::vector<Finding> judge_binding(const Readings& readings) {
  std::vector<Finding> findings;
  for (const HostReadings& host : readings.hosts) {
    const Ranks ranks = ranks_on(readings, host);
    if (is_crowded(readings, host)) {
      findings.push_back(crowded(readings, host));
      continue;
    }
    add_unbound(findings, host, ranks);
    add_shared_cores(findings, host, ranks);
    add_far_memory(findings, host, ranks);
  }
  return findings;
}

namespace {

/// The busiest other processes, such as "; busiest: process 4711 (python3, 1.0 cores)"; empty if
/// none is known.
std::string users(const HostReadings& host) {
  constexpr double least_cores = 0.05;
  constexpr std::size_t most = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, host.others.size()); ++i)
    if (const OtherProcess& other = host.others[i]; other.cores >= least_cores)
      text += fmt::format("{}process {} ({}, {:.1f} cores)", text.empty() ? "" : ", ", other.number,
                          other.name, other.cores);
  return text.empty() ? text : "; busiest: " + text;
}

/// The ranks that may run on the physical core of `core`.
std::vector<int> ranks_at(const Readings& readings, const HostReadings& host, const Core& core) {
  const std::set<int> wanted = physical_cores(host, std::set{core.number});
  std::vector<int> found;
  for (const RankReadings* rank : ranks_on(readings, host))
    if (physical_cores(host, *rank).contains(*wanted.begin())) found.push_back(rank->rank);
  return found;
}

void add_busy_cores(std::vector<Finding>& findings, const Readings& readings, const HostReadings& host) {
  std::vector<int> cores, ranks;
  double most = 0, elsewhere = 0;
  for (const Core& core : host.cores) {
    const std::vector<int> here = ranks_at(readings, host, core);
    if (here.empty()) elsewhere += typical(core.busy);
    if (here.empty() || !exceeds(core.busy, Limits::busy)) continue;
    cores.push_back(core.number);
    ranks.insert(ranks.end(), here.begin(), here.end());
    most = std::max(most, typical(core.busy));
  }
  if (!cores.empty())
    findings.push_back(
        {.about = "load",
         .ranks = ranks,
         .what = fmt::format("other processes use {} {} % of the time while all ranks sleep; {} may run "
                             "there{}",
                             counted("core", cores), fmt::format("{:.0f}", 100 * most),
                             counted("rank", ranks), users(host)),
         .advice = "end them, wait for them, or leave their cores to them"});
  const double noticeable = std::max(0.5, 0.05 * static_cast<double>(host.cores.size()));
  if (elsewhere >= noticeable)
    findings.push_back(
        {.weight = Finding::Weight::note,
         .about = "load",
         .what = fmt::format("other processes use {:.1f} cores where no rank runs{}", elsewhere, users(host)),
         .advice = "they share caches, memory and the power limit; end them if you can"});
}

void add_stolen(std::vector<Finding>& findings, const Readings& readings, const HostReadings& host) {
  std::vector<int> cores, ranks;
  double most = 0;
  for (const Core& core : host.cores) {
    const std::vector<int> here = ranks_at(readings, host, core);
    if (here.empty() || mean(core.stolen) < Limits::stolen) continue;
    cores.push_back(core.number);
    ranks.insert(ranks.end(), here.begin(), here.end());
    most = std::max(most, mean(core.stolen));
  }
  if (cores.empty()) return;
  findings.push_back({.about = "load",
                      .ranks = ranks,
                      .what = fmt::format("the hypervisor takes up to {} of the time of {} away",
                                          percent(most), counted("core", cores)),
                      .advice = "take a machine with cores of its own, or measure at a calmer hour"});
}

void add_quota(std::vector<Finding>& findings, const Readings& readings, const HostReadings& host) {
  const auto ranks = static_cast<double>(ranks_on(readings, host).size());
  const bool is_short = host.quota_cores > 0 && host.quota_cores < ranks;
  if (!is_short && host.quota_stops == 0) return;
  const std::string limit =
      host.quota_cores > 0 ? fmt::format(" to {:.1f} cores", host.quota_cores) : std::string();
  findings.push_back(
      {.about = "load",
       .what = fmt::format(
           "processor time is limited{} by a quota, and the ranks were held back {} times meanwhile", limit,
           host.quota_stops),
       .advice = "ask the container, job or service for more (docker: --cpus), or take fewer --ranks"});
}

}  // namespace

std::vector<Finding> judge_load(const Readings& readings) {
  std::vector<Finding> findings;
  for (const HostReadings& host : readings.hosts) {
    add_busy_cores(findings, readings, host);
    add_stolen(findings, readings, host);
    add_quota(findings, readings, host);
  }
  return findings;
}

}  // namespace baton::doctor
