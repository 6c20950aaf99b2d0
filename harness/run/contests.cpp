// SPDX-License-Identifier: Apache-2.0
#include "harness/run/contests.hpp"

#include <algorithm>
#include <tuple>

#include "collectives/executors/timing.hpp"
#include "harness/run/outcomes.hpp"

namespace baton {
namespace {

/// How case `index` ended last; null if it has not.
const Outcome* last_outcome(const Outcomes& outcomes, int index, int& launch) {
  for (launch = outcomes.launch(); launch > 0; --launch)
    if (const Outcome* outcome = outcomes.outcome(launch, index);
        outcome != nullptr && outcome->state != Outcome::State::begun)
      return outcome;
  return nullptr;
}

/// A row's place in its contest: its mode, then its kind, then its time.
std::tuple<int, int, double> rank_of(const Record& record) {
  const std::string mode = mode_of(record);
  const int group = mode == "exposed" ? 1 : mode == "compute_only" ? 2 : 0;
  if (record.is_timed()) return {group, 0, record.shown().median};
  return {group, record.skipped.empty() ? 1 : 2, 0};
}

/// Gives the row of case `index` its bound over all launches that timed it, since each measures the
/// link anew, and what the bound is of its times. None if a launch has none.
void add_bound(Record& record, const Outcomes& outcomes, int index) {
  std::vector<double> bounds, shares;
  for (int launch = 1; launch <= outcomes.launch(); ++launch) {
    const Outcome* outcome = outcomes.outcome(launch, index);
    if (outcome == nullptr || outcome->state != Outcome::State::timed) continue;
    record.known_bound_seconds = std::nullopt;
    if (!outcome->row.known_bound_seconds) return;
    bounds.push_back(*outcome->row.known_bound_seconds);
    shares.push_back(bounds.back() / median(outcome->seconds()));
  }
  record.known_bound_seconds = geometric_mean(bounds);
  if (bounds.size() > 1) record.bound_share = over_launches(shares);
}

struct Row {
  int index;
  Record record;
};

}  // namespace

std::string mode_of(const Record& record) { return record.bench_case.workload->axes().text("mode"); }

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

void add_outcomes(Standings& standings, const Outcomes& outcomes, int cases) {
  for (int launch = 1; launch <= outcomes.launch(); ++launch)
    for (int index = 0; index < cases; ++index)
      if (const Outcome* outcome = outcomes.outcome(launch, index);
          outcome != nullptr && outcome->state == Outcome::State::timed)
        standings.add(launch, index, outcome->seconds());
}

std::vector<Record> ranked_rows(const std::vector<int>& contest, const std::vector<Case>& cases,
                                const Outcomes& outcomes, const Standings& standings) {
  std::vector<Row> rows;
  for (const int index : contest) {
    int launch = 0;
    const Outcome* outcome = last_outcome(outcomes, index, launch);
    if (outcome == nullptr) continue;
    rows.push_back({index, outcome->row});
    Record& record = rows.back().record;
    record.bench_case = cases[index];
    if (!record.is_timed()) continue;
    record.standing = standings.standing(launch, index);
    record.over_launches = standings.over_launches(index);
    add_bound(record, outcomes, index);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return rank_of(a.record) < rank_of(b.record); });
  const auto best =
      std::find_if(rows.begin(), rows.end(), [](const Row& row) { return row.record.is_timed(); });
  for (Row& row : rows)
    if (row.record.is_timed()) row.record.place = {&row == &*best, standings.ratio(row.index, best->index)};
  std::vector<Record> records;
  for (Row& row : rows) records.push_back(std::move(row.record));
  return records;
}

}  // namespace baton
