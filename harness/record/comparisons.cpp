// SPDX-License-Identifier: Apache-2.0
#include "harness/record/comparisons.hpp"

#include <algorithm>
#include <utility>

#include "collectives/executors/timing.hpp"
#include "harness/record/cells.hpp"

namespace baton {
namespace {

/// True if the ranks of both cases have the same shares, and if both are cut into the same number
/// of blocks and carry states by the same scan, or one of them does neither.
bool have_like_exchanges(const Case& one, const Case& other) {
  const AxisValues axes = one.workload->axes(), others = other.workload->axes();
  const bool both_cut = one.workload->cuts_blocks() && other.workload->cuts_blocks();
  const std::string scan = axes.text("scan"), there = others.text("scan");
  return (!both_cut || one.blocks == other.blocks) && (scan.empty() || there.empty() || scan == there) &&
         axes.text("shares") == others.text("shares");
}

/// How a row of the baseline is called, such as "zeco overlapped, 8 blocks".
std::string title_of(const Case& one) {
  std::string title = one.workload->title();
  if (one.workload->variant() != Variant::whole) title += " " + one.workload->variant_name();
  if (!one.workload->cuts_blocks()) return title;
  return title + (one.blocks == auto_blocks ? ", auto blocks" : ", " + quantity(one.blocks, "block"));
}

/// The least spread between launches of a case.
double least_spread_of(const Case& one) { return one.backend->is_measured ? least_spread : 0; }

}  // namespace

Comparisons::Comparisons(const std::vector<Case>& cases, std::string baseline)
    : cases_(cases), baseline_(std::move(baseline)) {
  for (int index = 0; index < static_cast<int>(cases.size()); ++index) {
    std::vector<int>& group = groups_[cases[index].comparison_group()];
    group.push_back(index);
    group_of_.push_back(&group);
  }
}

void Comparisons::add(int launch, int index, const std::vector<double>& seconds,
                      const std::optional<double>& bound_seconds) {
  launches_[launch].try_emplace(index, Timed{seconds, median(seconds), bound_seconds});
}

Relative Comparisons::in_launch(int launch, int index) const {
  return relative_in(with_all({launch}, {index}), index);
}

Relative Comparisons::relative_in(const std::vector<int>& launches, int index) const {
  if (launches.empty()) return {};
  Relative relative{.ratio = {},
                    .hidden = hidden_share(launches, index),
                    .exposed_seconds = exposed_seconds(launches, index),
                    .ratio_to = {}};
  const std::optional<int> to = baseline_of(launches, index);
  if (to && (launches.size() == 1 || with_all(launches, {*to}).size() > 1)) {
    relative.ratio = ratio_in(launches, index, *to);
    relative.ratio_to = title_of(cases_[*to]);
  }
  return relative;
}

std::vector<int> Comparisons::with_all(const std::vector<int>& launches,
                                       const std::vector<int>& cases) const {
  std::vector<int> found;
  for (const int launch : launches)
    if (const auto at = launches_.find(launch); at != launches_.end())
      if (std::all_of(cases.begin(), cases.end(), [&](int one) { return at->second.contains(one); }))
        found.push_back(launch);
  return found;
}

std::vector<int> Comparisons::launches_of(int index) const {
  std::vector<int> all;
  for (const auto& [launch, times] : launches_) all.push_back(launch);
  return with_all(all, {index});
}

double Comparisons::typical(const std::vector<int>& launches, int index) const {
  std::vector<double> medians;
  for (const int launch : launches) medians.push_back(launches_.at(launch).at(index).median);
  return geometric_mean(medians);
}

/// The row of the baseline that a case is compared with: of the same way and, where both have them,
/// of the same number of blocks, scan and shares. A row without a way, such as that of a layer
/// without any exchange, stands beside all ways, and is best compared with what was published. Of
/// what is left the fastest counts.
std::optional<int> Comparisons::baseline_of(const std::vector<int>& launches, int index) const {
  const Variant variant = cases_[index].workload->variant();
  constexpr int never = 6;
  const auto rank = [&](int other) {  // how far it is from what should be compared
    const Variant there = cases_[other].workload->variant();
    if (there != variant && there != Variant::whole && variant != Variant::whole) return never;
    const int of_variants = there == variant                                         ? 0
                            : there == Variant::whole || there == Variant::published ? 1
                                                                                     : 2;
    return of_variants + (have_like_exchanges(cases_[index], cases_[other]) ? 0 : 3);
  };
  std::optional<int> best;
  std::pair<int, double> least{never, 0};
  for (const int other : *group_of_[index]) {
    const std::vector<int> both = with_all(launches, {index, other});
    if (cases_[other].workload->name() != baseline_ || both.empty()) continue;
    const std::pair<int, double> place{rank(other), typical(both, other)};
    if (place >= least) continue;
    least = place;
    best = other;
  }
  return best;
}

/// The case of the same workload, blocks, scan and shares in another variant, if there is one.
std::optional<int> Comparisons::sibling(int index, Variant variant) const {
  for (const int other : *group_of_[index]) {
    const Workload& workload = *cases_[other].workload;
    if (workload.name() == cases_[index].workload->name() && workload.variant() == variant &&
        have_like_exchanges(cases_[index], cases_[other]))
      return other;
  }
  return std::nullopt;
}

/// The hidden share of an overlapped layer's exchange. Nothing where the launches cannot tell that
/// waiting for the exchange takes longer than none: the share would be noise over noise.
std::optional<double> Comparisons::hidden_share(const std::vector<int>& launches, int index) const {
  const std::optional<int> exposed = sibling(index, Variant::exposed),
                           alone = sibling(index, Variant::without_exchange);
  if (cases_[index].workload->variant() != Variant::published || !exposed || !alone) return std::nullopt;
  const std::vector<int> all = with_all(launches, {index, *exposed, *alone});
  if (all.empty() || ratio_in(all, *exposed, *alone)->ci95[0] <= 1) return std::nullopt;
  const double waited = typical(all, *exposed);
  return (waited - typical(all, index)) / (waited - typical(all, *alone));
}

/// The seconds by which a model's line "full" takes longer than its line "split".
std::optional<double> Comparisons::exposed_seconds(const std::vector<int>& launches, int index) const {
  const std::optional<int> split = sibling(index, Variant::without_exchange);
  const Workload& workload = *cases_[index].workload;
  if (!workload.is_model() || workload.variant() != Variant::published || !split) return std::nullopt;
  const std::vector<int> both = with_all(launches, {index, *split});
  if (both.empty()) return std::nullopt;
  return typical(both, index) - typical(both, *split);
}

std::optional<OverLaunches> Comparisons::over_launches(int index) const {
  const std::vector<int> launches = launches_of(index);
  if (launches.size() < 2) return std::nullopt;
  std::vector<std::vector<double>> seconds;
  for (const int launch : launches) seconds.push_back(launches_.at(launch).at(index).seconds);
  return OverLaunches{static_cast<int>(seconds.size()),
                      summarise_launches(seconds, least_spread_of(cases_[index])),
                      relative_in(launches, index)};
}

std::optional<BoundOverLaunches> Comparisons::bound(int index) const {
  std::vector<double> bounds, shares;
  for (const int launch : launches_of(index)) {
    const Timed& timed = launches_.at(launch).at(index);
    if (!timed.bound_seconds) return std::nullopt;
    bounds.push_back(*timed.bound_seconds);
    shares.push_back(bounds.back() / timed.median);
  }
  if (bounds.empty()) return std::nullopt;
  return BoundOverLaunches{geometric_mean(bounds),
                           bounds.size() > 1 ? std::optional(baton::over_launches(shares)) : std::nullopt};
}

std::optional<Ratio> Comparisons::ratio(int index, int to) const {
  return ratio_in(launches_of(index), index, to);
}

std::optional<Ratio> Comparisons::ratio_in(const std::vector<int>& launches, int index, int to) const {
  const std::vector<int> both = with_all(launches, {index, to});
  if (both.empty()) return std::nullopt;
  if (index == to) return Ratio{1, {1, 1}};
  std::vector<double> ratios;
  for (const int launch : both) {
    const Launch& times = launches_.at(launch);
    ratios.push_back(times.at(index).median / times.at(to).median);
  }
  if (ratios.size() > 1) return baton::over_launches(ratios, least_spread_of(cases_[index]));
  const Launch& times = launches_.at(both.front());
  return ratio_of_medians(times.at(index).seconds, times.at(to).seconds);
}

}  // namespace baton
