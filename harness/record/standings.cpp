// SPDX-License-Identifier: Apache-2.0
#include "harness/record/standings.hpp"

namespace baton {
namespace {

/// The share over launches, one of each. Nothing where they cannot tell that waiting for the
/// exchange takes longer than none: the share would be noise over noise.
std::optional<double> hidden_share(const std::vector<ModeTimes>& launches) {
  double exchange = 0, hidden = 0;
  std::vector<double> ratios;
  for (const ModeTimes& times : launches) {
    exchange += times.exposed - times.compute_only;
    hidden += times.exposed - times.overlapped;
    ratios.push_back(times.exposed / times.compute_only);
  }
  const bool is_told = ratios.size() > 1 ? over_launches(ratios).ci95[0] > 1 : exchange > 0;
  return is_told ? std::optional(hidden / exchange) : std::nullopt;
}

}  // namespace

void ComparisonGroups::add(const Case& bench_case, const std::vector<double>& seconds) {
  groups_.emplace(bench_case.comparison_group(), Timed{bench_case, seconds, median(seconds)});
}

Standing ComparisonGroups::standing(const Case& bench_case) const {
  const Timed* added = find(bench_case);
  if (added == nullptr) return {};
  const auto times = modes(*added);
  return {ratio(*added), times ? hidden_share({*times}) : std::nullopt, times, exposed_seconds(*added)};
}

const std::vector<double>* ComparisonGroups::seconds(const Case& bench_case) const {
  const Timed* added = find(bench_case);
  return added == nullptr ? nullptr : &added->seconds;
}

const ComparisonGroups::Timed* ComparisonGroups::find(const Case& bench_case) const {
  const Timed* latest = nullptr;
  const auto [first, last] = groups_.equal_range(bench_case.comparison_group());
  for (auto entry = first; entry != last; ++entry)
    if (entry->second.bench_case.name() == bench_case.name()) latest = &entry->second;
  return latest;
}

std::optional<Ratio> ComparisonGroups::ratio(const Timed& timed) const {
  const Workload& workload = *timed.bench_case.workload;
  if (workload.name() == baseline_ && !workload.cuts_blocks()) return Ratio{1, {1, 1}};
  // If the baseline ran with several block counts: the same count if both cut the state, otherwise
  // its fastest.
  const Timed* best = nullptr;
  const auto [first, last] = groups_.equal_range(timed.bench_case.comparison_group());
  for (auto other = first; other != last; ++other) {
    const Timed& candidate = other->second;
    if (candidate.bench_case.workload->name() != baseline_) continue;
    const bool both_cut = candidate.bench_case.workload->cuts_blocks() && workload.cuts_blocks();
    if (both_cut && candidate.bench_case.blocks == timed.bench_case.blocks) {
      best = &candidate;
      break;
    }
    if (best == nullptr || candidate.median < best->median) best = &candidate;
  }
  if (best == nullptr) return std::nullopt;
  return ratio_of_medians(timed.seconds, best->seconds);
}

std::optional<ModeTimes> ComparisonGroups::modes(const Timed& timed) const {
  const Workload& workload = *timed.bench_case.workload;
  if (workload.variant() != "overlapped") return std::nullopt;
  std::optional<double> exposed, compute_only;
  const auto [first, last] = groups_.equal_range(timed.bench_case.comparison_group());
  for (auto other = first; other != last; ++other) {
    const Workload& sibling = *other->second.bench_case.workload;
    if (sibling.name() != workload.name()) continue;
    if (sibling.variant() == "exposed") exposed = other->second.median;
    if (sibling.variant() == "compute_only") compute_only = other->second.median;
  }
  if (!exposed || !compute_only) return std::nullopt;
  return ModeTimes{timed.median, *exposed, *compute_only};
}

std::optional<double> ComparisonGroups::exposed_seconds(const Timed& timed) const {
  const Workload& workload = *timed.bench_case.workload;
  if (workload.variant() != "full") return std::nullopt;
  const auto [first, last] = groups_.equal_range(timed.bench_case.comparison_group());
  for (auto other = first; other != last; ++other) {
    const Workload& sibling = *other->second.bench_case.workload;
    if (sibling.name() == workload.name() && sibling.variant() == "split")
      return timed.median - other->second.median;
  }
  return std::nullopt;
}

std::optional<OverLaunches> over_launches(const std::vector<std::vector<double>>& seconds,
                                          const std::vector<Standing>& standings) {
  if (seconds.size() < 2) return std::nullopt;
  OverLaunches over{static_cast<int>(seconds.size()), summarise_launches(seconds), {}};
  std::vector<double> ratios, exposed;
  std::vector<ModeTimes> modes;
  for (const Standing& standing : standings) {
    if (standing.exposed_seconds) exposed.push_back(*standing.exposed_seconds);
    if (standing.ratio) ratios.push_back(standing.ratio->value);
    if (standing.modes) modes.push_back(*standing.modes);
  }
  if (ratios.size() > 1) over.standing.ratio = over_launches(ratios);
  over.standing.hidden = hidden_share(modes);
  if (!exposed.empty()) over.standing.exposed_seconds = median(exposed);
  return over;
}

}  // namespace baton
