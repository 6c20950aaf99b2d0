// SPDX-License-Identifier: Apache-2.0
#include "harness/run/display.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <iterator>

#include "collectives/executors/timing.hpp"
#include "harness/options/options.hpp"
#include "harness/record/cells.hpp"
#include "harness/record/columns.hpp"
#include "harness/run/contests.hpp"
#include "harness/run/outcomes.hpp"

namespace baton {
namespace {

constexpr auto about_trace = "trace";

bool is_simulated(const Case& c) { return !find_backend(c.executor).is_measured; }

bool is_oversubscribed(const Record& record) {
  return record.conditions && record.conditions->oversubscribed();
}

bool is_throttled(const Record& record) { return record.conditions && record.conditions->throttled > 0; }

/// What a record's ranks waited for, in words.
std::string waits_in_words(const Conditions& here) {
  const std::string cores = cores_in_words(here.cores, here.quota);
  const std::string held = here.throttled > 0
                               ? fmt::format(
                                     "The quota of processor time held processes back {} times while {} "
                                     "timed",
                                     here.throttled, here.oversubscribed() ? "the first was" : "a row was")
                               : "";
  if (!here.oversubscribed()) return fmt::format("# {} ({})", held, cores);
  return fmt::format(
      "# ! marks rows with more busy threads than cores (here {} on {}): threads wait for their turn, "
      "and the times say nothing about the methods{}{}",
      here.busy_threads, cores, held.empty() ? "" : ". ", held);
}

/// The title above the rows of a mode, for contests with several modes.
std::string title_of_mode(const std::string& mode) {
  if (mode == "exposed") return "# exposed: every exchange is waited for at once\n";
  if (mode == "compute_only") return "# compute_only: no exchange\n";
  return "# overlapped: as published\n";
}

/// Which of all columns are over the launches of a run.
std::string note_of_wide(int launches) {
  return fmt::format(
      "# Mean, median, interval, min to max, p50 to p99, hidden share, time over dp, exposed time and the "
      "ratio to --baseline are over {} launches. All other columns are of the last launch.",
      launches);
}

/// The text of the skipped rows, with one line for three or more of the same reason.
std::string skipped_rows(std::span<const Record> records, const Table& table) {
  constexpr std::size_t many = 3;
  std::vector<std::pair<std::string, std::vector<const Record*>>> by_reason;
  for (const Record& record : records) {
    if (record.skipped.empty()) continue;
    const auto found = std::find_if(by_reason.begin(), by_reason.end(),
                                    [&](const auto& entry) { return entry.first == record.skipped; });
    if (found == by_reason.end())
      by_reason.push_back({record.skipped, {&record}});
    else
      found->second.push_back(&record);
  }
  std::string text;
  for (const auto& [reason, rows] : by_reason) {
    if (rows.size() < many) {
      for (const Record* row : rows) text += table.row(*row);
      continue;
    }
    std::string names;
    for (const Record* row : rows) names += (names.empty() ? "" : ", ") + row->bench_case.workload->name();
    text += wrapped(fmt::format("{} rows skipped: {}: {}", rows.size(), reason, names), "    ");
  }
  return text;
}

/// A line for each row whose time cannot be.
std::string impossible_rows(std::span<const Record> records) {
  std::string text;
  for (const Record& record : records)
    if (const std::string why = record.why_impossible(); !why.empty())
      text += wrapped(fmt::format("# {} {}", record.bench_case.workload->name(), why), "#   ");
  return text;
}

}  // namespace

Display::Display(const Options& options, const Outcomes& outcomes, Standings& standings, int launches)
    : options_(options),
      outcomes_(outcomes),
      standings_(standings),
      launches_(launches),
      contests_(contests_of(options.cases)),
      differences_(options.cases),
      progress_(options.cases, monotonic_seconds),
      line_(true, monotonic_seconds) {}

void Display::print(const std::string& text) {
  if (text.empty()) return;
  line_.clear();
  std::cout << text << std::flush;
}

/// Prints the lines above all rows, as far as they are known.
void Display::print_heading() {
  if (!has_heading_ && (outcomes_.unfinished() || outcomes_.ended() > 0)) {
    print(heading(options_));
    has_heading_ = true;
  }
  if (!has_heading_) return;
  for (; next_notice_ < outcomes_.notices().size(); ++next_notice_) {
    const auto& [about, text] = outcomes_.notices()[next_notice_];
    if (about != about_trace && noticed_.insert(about).second) print(text);
  }
}

/// True if each case of the contest has ended in the last launch, or never will since a contest
/// that runs later has begun.
bool Display::is_over(std::size_t contest) const {
  const auto holds = [](const std::vector<int>& cases, int index) {
    return std::find(cases.begin(), cases.end(), index) != cases.end();
  };
  const auto here = contests_.begin() + static_cast<std::ptrdiff_t>(contest);
  const auto first = outcomes_.is_reversed() ? contests_.begin() : here + 1;
  const auto last = outcomes_.is_reversed() ? here : contests_.end();
  if (const std::optional<int> running = outcomes_.unfinished())
    return std::any_of(first, last, [&](const auto& later) { return holds(later, *running); });
  return std::all_of(contests_[contest].begin(), contests_[contest].end(),
                     [this](int index) { return outcomes_.is_settled(index); });
}

void Display::refresh() {
  print_heading();
  progress_.look(outcomes_);
  if (launches_ > 0 && outcomes_.launch() == launches_)
    while (next_contest_ < contests_.size() && is_over(next_contest_))
      print_contest(contests_[next_contest_++]);
  if (line_.is_due()) line_.show(progress_.what(outcomes_, launches_), progress_.left(outcomes_, launches_));
}

/// The lines above the rows of a contest: an empty line or its title, and the titles of the table
/// if they are not those of the contest before.
std::string Display::title_of(const std::vector<Record>& records) {
  const Case& one = records[0].bench_case;
  const std::size_t rows = records.size();
  std::string title = differences_.of_contest(one);
  if (!title.empty())
    title = wrapped("# " + title, "#   ");
  else if (rows > 1 || rows_before_ > 1)
    title = "\n";
  if (rows_before_ == 0 && title == "\n") title.clear();
  rows_before_ = rows;
  if (table_ && is_of_simulated_ == is_simulated(one)) return title;
  is_of_simulated_ = is_simulated(one);
  int launches = 1;  // that its rows are of: an interrupted run began one more
  for (const Record& record : records)
    if (record.over_launches) launches = std::max(launches, record.over_launches->launches);
  if (options_.wide) {
    table_ = wide_table(one, options_.longest_name, launches);
    if (launches > 1) title += wrapped(note_of_wide(launches), "#   ");
  } else {
    std::vector<Case> alike;
    std::copy_if(options_.cases.begin(), options_.cases.end(), std::back_inserter(alike),
                 [this](const Case& c) { return is_simulated(c) == is_of_simulated_; });
    table_ = fitted_table(alike, launches);
  }
  return title + table_->head();
}

/// The explanation of the mark !, if a row has it and nothing explained it before, or what a quota
/// did to rows without it; otherwise empty.
std::string Display::warning_of(const std::vector<Record>& records) {
  auto found = std::find_if(records.begin(), records.end(), is_oversubscribed);
  if (found == records.end()) found = std::find_if(records.begin(), records.end(), is_throttled);
  if (has_warned_ || found == records.end()) return {};
  has_warned_ = true;
  return wrapped(waits_in_words(*found->conditions), "#   ");
}

void Display::print_contest(const std::vector<int>& contest) {
  add_outcomes(standings_, outcomes_, static_cast<int>(options_.cases.size()));
  const std::vector<Record> records = ranked_rows(contest, options_.cases, outcomes_, standings_);
  if (records.empty()) return;
  std::string text = warning_of(records) + title_of(records);
  const auto mode = [&](std::size_t row) { return mode_of(records[row]); };
  const bool has_modes = mode(0) != mode(records.size() - 1);
  for (std::size_t first = 0, last = 0; first < records.size(); first = last) {
    while (last < records.size() && mode(last) == mode(first)) ++last;
    if (has_modes) text += title_of_mode(mode(first));
    text += rows_of(std::span(records).subspan(first, last - first));
  }
  print(text + impossible_rows(records));
}

std::string Display::rows_of(std::span<const Record> records) {
  std::string text;
  for (const Record& record : records) {
    if (record.skipped.empty()) text += table_->row(record);
    prediction_errors_.add(record);
    beats_bound_ |= std::round(share_of_bound(record).value_or(0)) > 100;
  }
  return text + skipped_rows(records, *table_);
}

void Display::finish() {
  line_.clear();
  print_heading();
  while (next_contest_ < contests_.size()) print_contest(contests_[next_contest_++]);
  if (beats_bound_)
    print(
        wrapped("# Above 100 % of its bound a row beats the link as this launch measured it: alpha and beta "
                "have an error too, and so has the time.",
                "#   "));
  print(prediction_errors_.table());
  for (const auto& [about, text] : outcomes_.notices())
    if (about == about_trace) print(text);
}

}  // namespace baton
