// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace baton::doctor {
namespace {

/// A bit of NVML's reasons for lower clocks (nvmlClocksThrottleReason* of its reference manual).
struct ThrottleReason {
  std::uint64_t bit;
  Finding::Weight weight;
  const char* what;
  const char* advice;
};

constexpr const char* cooling =
    "look at the cooling, and at other jobs in the same chassis (nvidia-smi -q -d PERFORMANCE)";
constexpr const char* supply = "look at the power supply and its cables (nvidia-smi -q -d PERFORMANCE)";

constexpr ThrottleReason throttle_reasons[]{
    {0x08, Finding::Weight::problem, "the hardware, for heat or power", cooling},
    {0x20, Finding::Weight::problem, "the driver, for heat", cooling},
    {0x40, Finding::Weight::problem, "the hardware, for heat", cooling},
    {0x80, Finding::Weight::problem, "the power supply (power brake)", supply},
    {0x02, Finding::Weight::note, "a setting (application clocks)",
     "fine if it is meant so; else nvidia-smi -rac"},
    {0x04, Finding::Weight::note, "its power limit",
     "usual under full load; nvidia-smi -q -d POWER shows the limit"},
};

/// A device and its rank. A group has all devices of one executor, which are compared.
struct Member {
  const RankReadings* rank;
  const DeviceReadings* device;
};
using Group = std::vector<Member>;

/// The devices, a group for each executor.
std::vector<Group> groups_of(const Readings& readings) {
  std::map<std::string, Group> groups;
  for (const RankReadings& rank : readings.ranks)
    for (const DeviceReadings& device : rank.devices) groups[device.executor].push_back({&rank, &device});
  std::vector<Group> found;
  for (auto& [executor, group] : groups) found.push_back(std::move(group));
  return found;
}

const Repeats& values(const Member& member, const std::string& name) {
  static const Repeats none;
  const auto found = member.device->values.find(name);
  return found == member.device->values.end() ? none : found->second;
}

/// For each repeat 1 if the throttle reasons had `bit`, else 0.
Repeats repeats_with(const Member& member, std::uint64_t bit) {
  Repeats repeats;
  for (const double reasons : values(member, "throttle_reasons"))
    repeats.push_back(reasons > 0 && (static_cast<std::uint64_t>(reasons) & bit) != 0 ? 1 : 0);
  return repeats;
}

std::string clock_of(const Member& member) {
  const double mhz = typical(values(member, "sm_clock_mhz"), -1);
  return mhz < 0 ? "" : fmt::format(", at {:.0f} MHz", mhz);
}

void add_throttled(std::vector<Finding>& findings, const Member& member) {
  for (const ThrottleReason& reason : throttle_reasons) {
    if (mean(repeats_with(member, reason.bit)) < 0.5) continue;
    findings.push_back({.weight = reason.weight,
                        .about = "clock",
                        .ranks = {member.rank->rank},
                        .what = fmt::format("the GPU of rank {} is throttled by {}{}", member.rank->rank,
                                            reason.what, clock_of(member)),
                        .advice = reason.advice});
  }
}

/// Adds a finding if the clock called `name` is well below the highest one of the group.
void add_low_clock(std::vector<Finding>& findings, const Group& group, const Member& member,
                   const std::string& name, const std::string& noun) {
  std::vector<double> all;
  for (const Member& other : group) all.push_back(typical(values(other, name), -1));
  const double highest = *std::max_element(all.begin(), all.end());
  Repeats lack;
  for (const double mhz : values(member, name))
    lack.push_back(highest > 0 && mhz > 0 ? 1 - mhz / highest : 0);
  if (!exceeds(lack, Limits::clock_beside)) return;
  findings.push_back(
      {.about = "clock",
       .ranks = {member.rank->rank},
       .what = fmt::format("the {} of rank {}'s GPU is {:.0f} MHz, that of another {:.0f} MHz", noun,
                           member.rank->rank, typical(values(member, name)), highest),
       .advice = "nvidia-smi -q -d CLOCK,PERFORMANCE says why; nvidia-smi -rgc lifts a locked clock"});
}

void add_late(std::vector<Finding>& findings, const Group& group, const Member& member) {
  Repeats excess;
  double fastest_typical = typical(member.device->work_seconds);
  for (std::size_t repeat = 0; repeat < member.device->work_seconds.size(); ++repeat) {
    double fastest = member.device->work_seconds[repeat];
    for (const Member& other : group)
      if (repeat < other.device->work_seconds.size())
        fastest = std::min(fastest, other.device->work_seconds[repeat]);
    excess.push_back(fastest > 0 ? member.device->work_seconds[repeat] / fastest - 1 : 0);
  }
  for (const Member& other : group)
    fastest_typical = std::min(fastest_typical, typical(other.device->work_seconds));
  if (!exceeds(excess, Limits::late)) return;
  findings.push_back(
      {.about = "rank",
       .ranks = {member.rank->rank},
       .what = fmt::format("the GPU of rank {} is late: the same work takes it {}, the fastest {} ({}){}",
                           member.rank->rank, shown_seconds(typical(member.device->work_seconds)),
                           shown_seconds(fastest_typical), times(typical(excess)), clock_of(member)),
       .advice = "nvidia-smi shows other processes on it, its clocks and its errors (-q)"});
}

}  // namespace

std::vector<Finding> judge_devices(const Readings& readings) {
  std::vector<Finding> findings;
  for (const Group& group : groups_of(readings))
    for (const Member& member : group) {
      add_late(findings, group, member);
      add_throttled(findings, member);
      add_low_clock(findings, group, member, "sm_clock_mhz", "clock");
      add_low_clock(findings, group, member, "memory_clock_mhz", "memory clock");
      if (typical(values(member, "sm_clock_mhz"), 0) < 0)
        findings.push_back(
            {.weight = Finding::Weight::note,
             .about = "clock",
             .ranks = {member.rank->rank},
             .what = fmt::format("the clocks of rank {}'s GPU cannot be read", member.rank->rank),
             .advice = "libnvidia-ml.so.1 comes with the driver; a container must be given it"});
    }
  return findings;
}

}  // namespace baton::doctor
