// SPDX-License-Identifier: Apache-2.0
#include "harness/report/record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace baton {
namespace {

std::string error_line(const std::string& name, const std::vector<double>& log_ratios) {
  double sum = 0, error = 0, worst = 0;
  for (const double ratio : log_ratios) {
    sum += ratio;
    error += std::abs(ratio);
    worst = std::max(worst, std::abs(ratio));
  }
  const double count = static_cast<double>(log_ratios.size());
  return fmt::format("# {:<26} {:>4} {:>10.2f} {:>8.0f} {:>8.0f}\n", name, log_ratios.size(),
                     std::exp(sum / count), 100 * (std::exp(error / count) - 1), 100 * (std::exp(worst) - 1));
}

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

Verified sum(Verified before, const Verified& after) {
  before.wrong += after.wrong;
  before.relative_error = std::max(before.relative_error, after.relative_error);
  before.tolerance = std::max(before.tolerance, after.tolerance);
  before.seconds += after.seconds;
  before.elements = std::max(before.elements, after.elements);
  before.tokens = std::max(before.tokens, after.tokens);
  std::vector<std::int64_t> heads;
  std::set_union(before.heads.begin(), before.heads.end(), after.heads.begin(), after.heads.end(),
                 std::back_inserter(heads));
  before.heads = std::move(heads);
  if (before.first_wrong.empty()) before.first_wrong = after.first_wrong;
  return before;
}

std::optional<double> Record::bound_seconds() const {
  if (!cost || bench_case.ranks < 2 || bench_case.ranks_a_gpu > 1) return std::nullopt;
  if (known_bound_seconds) return known_bound_seconds;
  // In rounds back to back the hops of one round may overlap with the bytes of another, and an
  // empty round is read once.
  if (bench_case.timing != TimingMode::isolated)
    return alpha_beta.busy_seconds(cost->sent_bytes, product_flops());
  return alpha_beta.bound_seconds(cost->hops, cost->sent_bytes, product_flops());
}

std::vector<int> Record::rounds_as_last() const {
  const auto& ranks = samples.rank_seconds;
  if (ranks.empty()) return known_rounds_as_last;
  if (ranks.size() < 2 || static_cast<int>(ranks.size()) != bench_case.ranks) return {};
  std::vector<int> rounds(ranks.size(), 0);
  for (std::size_t round = 0; round < ranks.front().size(); ++round) {
    const auto slowest = std::max_element(ranks.begin(), ranks.end(),
                                          [round](auto& a, auto& b) { return a[round] < b[round]; });
    ++rounds[slowest - ranks.begin()];
  }
  return rounds;
}

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

void PredictionErrors::add(const Record& record) {
  if (record.is_timed() && record.predicted_seconds)
    log_ratios_[record.bench_case.workload->name()].push_back(
        std::log(*record.predicted_seconds / record.shown().median));
}

std::string PredictionErrors::table() const {
  if (log_ratios_.empty()) return {};
  std::string text = fmt::format("# {:<26} {:>4} {:>10} {:>8} {:>8}\n", "predicted against measured", "rows",
                                 "ratio", "error %", "worst %");
  std::vector<double> all;
  for (const auto& [name, log_ratios] : log_ratios_) {
    text += error_line(name, log_ratios);
    all.insert(all.end(), log_ratios.begin(), log_ratios.end());
  }
  return text + error_line("all", all);
}

}  // namespace baton
