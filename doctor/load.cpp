// SPDX-License-Identifier: Apache-2.0
#include "doctor/load.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "doctor/placement.hpp"

namespace baton::doctor {
namespace {

/// ": mostly process 4711 (python3, 1.0 cores)", or nothing if none is known.
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
       .what = fmt::format("the container is limited{}, and was held back {} times meanwhile", limit,
                           host.quota_stops),
       .advice = "start the container without a limit (docker: no --cpus), or with more cores than ranks"});
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
