// SPDX-License-Identifier: Apache-2.0
#include "harness/run/rows.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "harness/record/comparisons.hpp"
#include "harness/record/facts.hpp"
#include "harness/run/results.hpp"

namespace baton {
namespace {

/// The key of a row by which rows are sorted: its mode, then its kind, then its time.
std::tuple<int, int, double> order_of(const Row& row) {
  const std::string mode = mode_of(row);
  const int group = mode == "exposed" ? 1 : mode == "compute_only" ? 2 : 0;
  if (row.is_timed()) return {group, 0, row.median()};
  return {group, row.result.has("skipped") ? 2 : 1, 0};
}

std::optional<double> value_of(const std::optional<Ratio>& ratio) {
  return ratio ? std::optional(ratio->value) : std::nullopt;
}

std::optional<Interval> interval_of(const std::optional<Ratio>& ratio) {
  return ratio ? std::optional(ratio->ci95) : std::nullopt;
}

void add_relative(Result& result, const Relative& relative) {
  result.set("ratio", value_of(relative.ratio));
  result.set("ratio_ci95", interval_of(relative.ratio));
  result.set("ratio_to", relative.ratio_to);
  result.set("hidden", relative.hidden);
  result.set("exposed_seconds", relative.exposed_seconds);
}

/// The row of case `index`, which ended last in `launch`, with its statistics over all launches.
Row row_of(int launch, int index, const Case& bench_case, const Result& last,
           const Comparisons& comparisons) {
  Row row{.bench_case = bench_case, .result = last};
  if (!row.is_timed()) return row;
  const std::optional<OverLaunches> over = comparisons.over_launches(index);
  add_relative(row.result, over ? over->relative : comparisons.in_launch(launch, index));
  if (over) {
    row.launches = over->launches;
    set_summary(row.result, over->summary);
    add_bandwidths(row.result, bench_case, row.median());
  }
  const std::optional<BoundOverLaunches> bound = comparisons.bound(index);
  row.result.set("bound_seconds", bound ? std::optional(bound->seconds) : std::nullopt);
  if (bound) row.bound_share = bound->share;
  return row;
}

}  // namespace

std::string mode_of(const Row& row) { return row.bench_case.workload->axes().text("mode"); }

std::vector<std::vector<int>> contests_of(const std::vector<Case>& cases) {
  std::vector<std::vector<int>> all;
  std::map<std::pair<int, std::string>, std::size_t> places;
  for (int index = 0; index < static_cast<int>(cases.size()); ++index) {
    const Case& c = cases[index];
    const auto [place, is_new] = places.try_emplace({c.cycle, c.contest()}, all.size());
    if (is_new) all.emplace_back();
    all[place->second].push_back(index);
  }
  return all;
}

void add_comparisons(Result& result, const Comparisons& comparisons, int launch, int index) {
  if (result.is_timed()) add_relative(result, comparisons.in_launch(launch, index));
  const std::optional<OverLaunches> over = comparisons.over_launches(index);
  if (!over) return;
  result.set("over_launches.launches", over->launches);
  result.set("over_launches.median_seconds", over->summary.median);
  result.set("over_launches.ci95_seconds", over->summary.ci95);
  result.set("over_launches.ratio", value_of(over->relative.ratio));
  result.set("over_launches.ratio_ci95", interval_of(over->relative.ratio));
  result.set("over_launches.ratio_to", over->relative.ratio_to);
  result.set("over_launches.hidden", over->relative.hidden);
}

std::vector<Row> ranked_rows(const std::vector<int>& contest, const std::vector<Case>& cases,
                             const Results& results, const Comparisons& comparisons) {
  std::vector<std::pair<int, Row>> rows;  // with the index of the case
  for (const int index : contest)
    if (const int launch = results.last_launch(index); launch > 0)
      rows.emplace_back(index,
                        row_of(launch, index, cases[index], *results.result(launch, index), comparisons));
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return order_of(a.second) < order_of(b.second); });
  const auto fastest =
      std::find_if(rows.begin(), rows.end(), [](const auto& one) { return one.second.is_timed(); });
  std::vector<Row> ranked;
  for (auto& [index, row] : rows) {
    row.is_fastest = fastest != rows.end() && index == fastest->first;
    if (row.is_timed()) row.to_fastest = comparisons.ratio(index, fastest->first);
    ranked.push_back(std::move(row));
  }
  return ranked;
}

}  // namespace baton
