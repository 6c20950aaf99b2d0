// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/slowness.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/doctor/placement.hpp"

namespace baton::doctor {
namespace {

/// The part by which a rank's time exceeds that of the fastest rank, in each repeat.
Repeats excess_of(const Readings& readings, const RankReadings& rank) {
  Repeats excess;
  for (std::size_t repeat = 0; repeat < rank.spin_seconds.size(); ++repeat) {
    double fastest = rank.spin_seconds[repeat];
    for (const RankReadings& other : readings.ranks)
      if (repeat < other.spin_seconds.size()) fastest = std::min(fastest, other.spin_seconds[repeat]);
    excess.push_back(fastest > 0 ? rank.spin_seconds[repeat] / fastest - 1 : 0);
  }
  return excess;
}

double fastest(const Readings& readings) {
  double least = typical(readings.ranks.front().spin_seconds);
  for (const RankReadings& rank : readings.ranks) least = std::min(least, typical(rank.spin_seconds));
  return least;
}

/// The median clock of the ranks in MHz; 0 if unknown.
double usual_clock(const Readings& readings) {
  std::vector<double> clocks;
  for (const RankReadings& rank : readings.ranks)
    if (!rank.clock_mhz.empty()) clocks.push_back(typical(rank.clock_mhz));
  return typical(clocks);
}

/// The cause of a late rank, and the advice.
struct Cause {
  std::string what;
  std::string advice;
};

Cause cause_of(const Readings& readings, const RankReadings& rank) {
  const HostReadings& host = readings.host(rank.host);
  const Core* core = own_core(host, rank);
  const std::string place = core == nullptr ? "its core" : fmt::format("core {}", core->number);
  if (exceeds(rank.waited, Limits::waited))
    return {fmt::format("; another thread had {} for {} of that time", place, percent(typical(rank.waited))),
            fmt::format("end what else runs on {}, or bind the ranks to other cores", place)};
  const double clock = typical(rank.clock_mhz), usual = usual_clock(readings);
  if (clock > 0 && clock < (1 - Limits::clock_beside) * usual)
    return {fmt::format("; its clock is {:.0f} MHz, the usual one here {:.0f} MHz", clock, usual),
            "look for heat, for a power limit and for the settings of the clock (cpupower frequency-info)"};
  if (core != nullptr && mean(core->stolen) >= Limits::stolen / 2)
    return {fmt::format("; the hypervisor took {} for {} of that time", place, percent(mean(core->stolen))),
            "take a machine with cores of its own, or measure at a calmer hour"};
  return {"",
          fmt::format("look what else uses {}, its hyperthread and its host; if it stays late, leave {} out",
                      place, place)};
}

bool is_late(const Readings& readings, const RankReadings& rank) {
  return exceeds(excess_of(readings, rank), Limits::late);
}

Finding late(const Readings& readings, const RankReadings& rank) {
  const Cause cause = cause_of(readings, rank);
  return {
      .about = "rank",
      .ranks = {rank.rank},
      .what = fmt::format("rank {} is late: the same work takes it {}, the fastest rank {} ({}){}", rank.rank,
                          shown_seconds(typical(rank.spin_seconds)), shown_seconds(fastest(readings)),
                          times(typical(excess_of(readings, rank))), cause.what),
      .advice = cause.advice};
}

/// The finding about ranks that are not late, but have their cores only for a part of the time.
Finding waiting(const Readings& readings, const std::vector<int>& ranks) {
  double most = 0;
  for (const RankReadings& rank : readings.ranks)
    if (std::find(ranks.begin(), ranks.end(), rank.rank) != ranks.end())
      most = std::max(most, typical(rank.waited));
  std::string places;
  for (const RankReadings& rank : readings.ranks)
    if (const Core* core = own_core(readings.host(rank.host), rank);
        core != nullptr && std::find(ranks.begin(), ranks.end(), rank.rank) != ranks.end())
      places += fmt::format("{}core {}", places.empty() ? " (" : ", ", core->number);
  return {
      .about = "rank",
      .ranks = ranks,
      .what = fmt::format("{} {}{}; other threads run there for up to {} of the time", counted("rank", ranks),
                          ranks.size() == 1 ? "waits for its core" : "wait for their cores",
                          places.empty() ? places : places + ")", percent(most)),
      .advice = "end the other threads, or bind the ranks to other cores"};
}

}  // namespace

std::vector<int> late_ranks(const Readings& readings) {
  std::vector<int> late;
  for (const RankReadings& rank : readings.ranks)
    if (is_late(readings, rank) || exceeds(rank.waited, Limits::waited)) late.push_back(rank.rank);
  return late;
}

std::vector<Finding> judge_ranks(const Readings& readings) {
  std::vector<Finding> findings;
  std::vector<int> wait;
  for (const RankReadings& rank : readings.ranks) {
    if (is_crowded(readings, readings.host(rank.host))) continue;  // they wait for one another
    if (is_late(readings, rank))
      findings.push_back(late(readings, rank));
    else if (exceeds(rank.waited, Limits::waited))
      wait.push_back(rank.rank);
  }
  if (!wait.empty()) findings.push_back(waiting(readings, wait));
  return findings;
}

namespace {

/// The clock in MHz that a rank's core must reach: its base clock, or half of the highest one if
/// that is unknown, since some processors reach no more when all cores are busy.
double expected_clock(const RankReadings& rank) {
  return rank.base_mhz > 0 ? rank.base_mhz : rank.most_mhz / 2;
}

Finding low_clock(const RankReadings& rank) {
  return {
      .about = "clock",
      .ranks = {rank.rank},
      .what = fmt::format("the core of rank {} runs at {:.0f} MHz under load, at least {:.0f} are expected{}",
                          rank.rank, typical(rank.clock_mhz), expected_clock(rank),
                          rank.governor.empty() ? "" : " (governor " + rank.governor + ")"),
      .advice = "look for heat and power limits; cpupower frequency-set -g performance"};
}

Finding heated(const RankReadings& rank) {
  return {
      .about = "clock",
      .ranks = {rank.rank},
      .what = fmt::format("heat slowed the core of rank {} {} times meanwhile", rank.rank, rank.heat_events),
      .advice = "let it cool down, and look at fans and dust"};
}

Finding limited_clock(const RankReadings& rank) {
  return {.weight = Finding::Weight::note,
          .about = "clock",
          .ranks = {rank.rank},
          .what = fmt::format("the core of rank {} is limited to {:.0f} of its {:.0f} MHz", rank.rank,
                              rank.allowed_mhz, rank.most_mhz),
          .advice = "fine if it is meant so; else cpupower frequency-set -u"};
}

}  // namespace

std::vector<Finding> judge_clocks(const Readings& readings) {
  std::vector<Finding> findings;
  for (const RankReadings& rank : readings.ranks) {
    Repeats lack;
    for (const double mhz : rank.clock_mhz)
      lack.push_back(expected_clock(rank) > 0 ? 1 - mhz / expected_clock(rank) : 0);
    if (exceeds(lack, Limits::clock)) findings.push_back(low_clock(rank));
    if (rank.heat_events > 0) findings.push_back(heated(rank));
    if (rank.allowed_mhz > 0 && rank.allowed_mhz < (1 - Limits::clock) * rank.most_mhz)
      findings.push_back(limited_clock(rank));
  }
  return findings;
}

}  // namespace baton::doctor
