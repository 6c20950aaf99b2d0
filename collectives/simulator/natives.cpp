// SPDX-License-Identifier: Apache-2.0
#include "collectives/simulator/natives.hpp"

#include <algorithm>
#include <map>

namespace baton {
namespace {

/// Natives that gather maps by a library's call and fold them in a kernel behind it.
const std::map<std::string, std::string> folding{{"nccl_all_gather_scan", "nccl_all_gather"}};

const std::string& call_of(const std::string& native) {
  const auto found = folding.find(native);
  return found == folding.end() ? native : found->second;
}

/// Seconds in which the last rank folds the maps that it gathered.
double fold_seconds(const DeviceRates& device, const Step& step, double gathered_bytes) {
  const double bytes = gathered_bytes + static_cast<double>(step.writes[0].bytes());
  const double flops = 2 * gathered_bytes / sizeof(float);
  return device.kernel.launch_seconds + device.combine.seconds(flops, bytes);
}

}  // namespace

std::set<std::string> simulated_natives(const Topology& topology) {
  std::set<std::string> names;
  for (const auto& [call, times] : topology.natives) names.insert(call);
  for (const auto& [native, call] : folding)
    if (topology.natives.contains(call)) names.insert(native);
  return names;
}

std::optional<double> native_seconds(const Topology& topology, const std::string& native, int ranks,
                                     const Step& step) {
  const auto call = topology.natives.find(call_of(native));
  if (call == topology.natives.end()) return std::nullopt;
  double total_bytes = 0;
  for (const auto* slices : {&step.writes, &step.reads})
    for (const Slice& slice : *slices)
      total_bytes = std::max(total_bytes, static_cast<double>(slice.bytes()));
  const double seconds =
      std::max(0.0, call->second.seconds(ranks, total_bytes / ranks) - topology.round_seconds);
  return folding.contains(native) ? seconds + fold_seconds(topology.device, step, total_bytes) : seconds;
}

}  // namespace baton
