// SPDX-License-Identifier: Apache-2.0
// Made-up readings of a calm machine, which a test then changes.
#pragma once

#include <string>
#include <vector>

#include "harness/doctor/findings.hpp"

namespace baton::doctor {

inline constexpr int made_up_repeats = 7;

/// The same value in all repeats.
inline Repeats always(double value) { return Repeats(made_up_repeats, value); }

inline Core made_up_core(int number) {
  return {.number = number,
          .physical = number,
          .package = 0,
          .cache = 0,
          .node = 0,
          .busy = always(0.01),
          .stolen = always(0)};
}

inline LinkReadings made_up_links(const std::string& executor, int ranks, double latency, double large) {
  LinkReadings links{.executor = executor, .ranks = ranks, .large_bytes = 1 << 20};
  for (int from = 0; from < ranks; ++from)
    for (int to = from + 1; to < ranks; ++to)
      links.pairs.push_back({from, to, always(latency), always(large)});
  return links;
}

/// One host with a rank bound to each of its cores, no GPU.
inline Readings calm(int ranks) {
  Readings readings{.machine = "a machine, made up", .build = {.type = "Release", .commit = "abc"}};
  HostReadings host{.host = 1, .clock_source = "tsc", .timer_seconds = 25e-9, .shared_memory_bytes = 1 << 30};
  for (int rank = 0; rank < ranks; ++rank) {
    host.cores.push_back(made_up_core(rank));
    readings.ranks.push_back({.rank = rank,
                              .host = 1,
                              .cores = {rank},
                              .core = rank,
                              .memory_node = 0,
                              .spin_seconds = always(5e-3 * (1 + 0.01 * (rank % 3))),
                              .waited = always(0.002)});
  }
  readings.hosts.push_back(host);
  if (ranks > 1) readings.links.push_back(made_up_links("mpi", ranks, 0.5e-6, 150e-6));
  return readings;
}

/// Adds a GPU of equal speed to each rank.
inline void add_gpus(Readings& readings) {
  for (HostReadings& host : readings.hosts) host.gpus = static_cast<int>(readings.ranks.size());
  readings.build.executors = {{"nccl", ""}};
  for (RankReadings& rank : readings.ranks)
    rank.devices.push_back({.executor = "nccl",
                            .name = "a GPU",
                            .work_seconds = always(1e-3),
                            .values = {{"sm_clock_mhz", always(1980)},
                                       {"memory_clock_mhz", always(2619)},
                                       {"throttle_reasons", always(0)}}});
}

/// The findings that are about `about`, one line each: "what".
inline std::vector<std::string> whats(const std::vector<Finding>& findings, const std::string& about) {
  std::vector<std::string> texts;
  for (const Finding& one : findings)
    if (one.about == about) texts.push_back(one.what);
  return texts;
}

}  // namespace baton::doctor
