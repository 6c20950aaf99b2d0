// SPDX-License-Identifier: Apache-2.0
#include "harness/record/standings.hpp"

#include <utility>

#include "collectives/executors/timing.hpp"

namespace baton {
namespace {

/// The hidden share of the exchange over several launches. Nothing where they cannot tell that
/// waiting for the exchange takes longer than none: the share would be noise over noise.
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

Standings::Standings(const std::vector<Case>& cases, std::string baseline)
    : cases_(cases), baseline_(std::move(baseline)) {
  for (int index = 0; index < static_cast<int>(cases.size()); ++index) {
    std::vector<int>& group = groups_[cases[index].comparison_group()];
    group.push_back(index);
    group_of_.push_back(&group);
  }
}

void Standings::add(int launch, int index, const std::vector<double>& seconds) {
  launches_[launch].try_emplace(index, Timed{seconds, median(seconds)});
}

Standing Standings::standing(int launch, int index) const {
  const auto found = launches_.find(launch);
  if (found == launches_.end() || !found->second.contains(index)) return {};
  const Launch& times = found->second;
  const double own = times.at(index).median;
  const std::string variant = cases_[index].workload->variant();
  Standing standing{
      .ratio = ratio_to_baseline(times, index), .hidden = {}, .modes = {}, .exposed_seconds = {}};
  if (variant == "overlapped") {
    const auto exposed = median_of(times, index, "exposed");
    const auto compute_only = median_of(times, index, "compute_only");
    if (exposed && compute_only) standing.modes = ModeTimes{own, *exposed, *compute_only};
    if (standing.modes) standing.hidden = hidden_share({*standing.modes});
  }
  if (variant == "full")
    if (const auto split = median_of(times, index, "split")) standing.exposed_seconds = own - *split;
  return standing;
}

std::optional<Ratio> Standings::ratio_to_baseline(const Launch& launch, int index) const {
  const Workload& workload = *cases_[index].workload;
  if (workload.name() == baseline_ && !workload.cuts_blocks()) return Ratio{1, {1, 1}};
  // If the baseline ran with several block counts: the same count if both cut the state, otherwise
  // its fastest.
  const Timed* best = nullptr;
  for (const int other : *group_of_[index]) {
    const Case& candidate = cases_[other];
    if (candidate.workload->name() != baseline_ || !launch.contains(other)) continue;
    const Timed& times = launch.at(other);
    const bool both_cut = candidate.workload->cuts_blocks() && workload.cuts_blocks();
    if (both_cut && candidate.blocks == cases_[index].blocks)
      return ratio_of_medians(launch.at(index).seconds, times.seconds);
    if (best == nullptr || times.median < best->median) best = &times;
  }
  if (best == nullptr) return std::nullopt;
  return ratio_of_medians(launch.at(index).seconds, best->seconds);
}

/// The median seconds of the same workload in another variant; nothing if that was not timed.
std::optional<double> Standings::median_of(const Launch& launch, int index,
                                           const std::string& variant) const {
  std::optional<double> found;
  for (const int other : *group_of_[index]) {
    const Workload& sibling = *cases_[other].workload;
    const std::string scan = sibling.axes().text("scan");  // a row without an exchange has none
    if (!scan.empty() && scan != cases_[index].workload->axes().text("scan")) continue;
    if (sibling.name() == cases_[index].workload->name() && sibling.variant() == variant &&
        launch.contains(other))
      found = launch.at(other).median;
  }
  return found;
}

std::optional<OverLaunches> Standings::over_launches(int index) const {
  std::vector<std::vector<double>> seconds;
  std::vector<Standing> standings;
  for (const auto& [launch, times] : launches_) {
    if (!times.contains(index)) continue;
    seconds.push_back(times.at(index).seconds);
    standings.push_back(standing(launch, index));
  }
  return baton::over_launches(seconds, standings);
}

std::optional<Ratio> Standings::ratio(int index, int to) const {
  std::vector<double> ratios;
  std::optional<Ratio> only;
  for (const auto& [launch, times] : launches_) {
    if (!times.contains(index) || !times.contains(to)) continue;
    const Timed &own = times.at(index), &other = times.at(to);
    if (ratios.empty()) only = ratio_of_medians(own.seconds, other.seconds);
    ratios.push_back(own.median / other.median);
  }
  return ratios.size() > 1 ? std::optional(baton::over_launches(ratios)) : only;
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
