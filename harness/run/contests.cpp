// SPDX-License-Identifier: Apache-2.0
#include "harness/run/contests.hpp"

#include <algorithm>
#include <tuple>

#include "harness/run/ledger.hpp"

namespace baton {
namespace {

/// How case `index` ended last; null if it has not.
const Outcome* last_outcome(const Ledger& ledger, int index, int& launch) {
  for (launch = ledger.launch(); launch > 0; --launch)
    if (const Outcome* outcome = ledger.outcome(launch, index);
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

void RunStandings::add(int launch, int index, const std::vector<double>& seconds) {
  if (!added_.insert({launch, index}).second) return;
  groups_.try_emplace(launch, baseline_).first->second.add(cases_[index], seconds);
}

void RunStandings::add(const Ledger& ledger) {
  for (int launch = 1; launch <= ledger.launch(); ++launch)
    for (int index = 0; index < static_cast<int>(cases_.size()); ++index)
      if (const Outcome* outcome = ledger.outcome(launch, index);
          outcome != nullptr && outcome->state == Outcome::State::timed)
        add(launch, index, outcome->seconds());
}

Standing RunStandings::standing(int launch, int index) const {
  const auto group = groups_.find(launch);
  return group == groups_.end() ? Standing{} : group->second.standing(cases_[index]);
}

std::optional<OverLaunches> RunStandings::over_launches(int index) const {
  std::vector<std::vector<double>> seconds;
  std::vector<Standing> standings;
  for (const auto& [launch, group] : groups_) {
    const auto* rounds = group.seconds(cases_[index]);
    if (rounds == nullptr) continue;
    seconds.push_back(*rounds);
    standings.push_back(group.standing(cases_[index]));
  }
  return baton::over_launches(seconds, standings);
}

std::optional<Ratio> RunStandings::ratio(int index, int to) const {
  std::vector<double> ratios;
  std::optional<Ratio> only;
  for (const auto& [launch, group] : groups_) {
    const auto *own = group.seconds(cases_[index]), *other = group.seconds(cases_[to]);
    if (own == nullptr || other == nullptr) continue;
    if (ratios.empty()) only = ratio_of_medians(*own, *other);
    ratios.push_back(median(*own) / median(*other));
  }
  return ratios.size() > 1 ? std::optional(baton::over_launches(ratios)) : only;
}

std::vector<Record> ranked_rows(const std::vector<int>& contest, const std::vector<Case>& cases,
                                const Ledger& ledger, const RunStandings& launches) {
  std::vector<Row> rows;
  for (const int index : contest) {
    int launch = 0;
    const Outcome* outcome = last_outcome(ledger, index, launch);
    if (outcome == nullptr) continue;
    rows.push_back({index, outcome->row});
    Record& record = rows.back().record;
    record.bench_case = cases[index];
    if (!record.is_timed()) continue;
    record.standing = launches.standing(launch, index);
    record.over_launches = launches.over_launches(index);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return rank_of(a.record) < rank_of(b.record); });
  const auto best =
      std::find_if(rows.begin(), rows.end(), [](const Row& row) { return row.record.is_timed(); });
  for (Row& row : rows)
    if (row.record.is_timed()) row.record.place = {&row == &*best, launches.ratio(row.index, best->index)};
  std::vector<Record> records;
  for (Row& row : rows) records.push_back(std::move(row.record));
  return records;
}

}  // namespace baton
