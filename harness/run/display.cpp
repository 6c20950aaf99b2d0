// SPDX-License-Identifier: Apache-2.0
#include "harness/run/display.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <iterator>

#include "collectives/executors/timing.hpp"
#include "harness/machine/conditions.hpp"
#include "harness/options/options.hpp"
#include "harness/record/cells.hpp"
#include "harness/record/columns.hpp"
#include "harness/run/results.hpp"
#include "harness/run/rows.hpp"

namespace baton {
namespace {

constexpr auto about_trace = "trace";

bool is_simulated(const Case& c) { return !c.backend->is_measured; }

bool is_oversubscribed(const Row& row) { return row.result.value<bool>("conditions.oversubscribed"); }

bool is_throttled(const Row& row) { return row.result.whole("conditions.throttled") > 0; }

/// What a row's ranks waited for.
std::string reason_to_wait(const Row& row) {
  const Result& result = row.result;
  const std::string cores = cores_in_words(static_cast<int>(result.whole("conditions.cores")),
                                           result.known<double>("conditions.quota"));
  const std::int64_t throttled = result.whole("conditions.throttled");
  const std::string held =
      throttled > 0 ? fmt::format("The quota of processor time held processes back {} times while {} timed",
                                  throttled, is_oversubscribed(row) ? "the first was" : "a row was")
                    : "";
  if (!is_oversubscribed(row)) return fmt::format("# {} ({})", held, cores);
  return fmt::format(
      "# ! marks rows with more busy threads than cores (here {} on {}): threads wait for their turn, "
      "and the times say nothing about the methods{}{}",
      result.whole("conditions.busy_threads"), cores, held.empty() ? "" : ". ", held);
}

/// The title above the rows of a mode, for contests with several modes.
std::string title_of_mode(const std::string& mode) {
  if (mode == "exposed") return "# exposed: every exchange is waited for at once\n";
  if (mode == "compute_only") return "# compute_only: no exchange\n";
  return "# overlapped: as published\n";
}

/// The columns that summarise all launches of a run.
std::string note_of_wide(int launches) {
  return fmt::format(
      "# Mean, median, interval, min to max, p50 to p99, hidden share, time over dp, exposed time and the "
      "ratio to --baseline are over {} launches. All other columns are of the last launch.",
      launches);
}

/// The text of the skipped rows, with one line for three or more of the same reason.
std::string skipped_rows(std::span<const Row> rows, const Table& table) {
  constexpr std::size_t many = 3;
  std::vector<std::pair<std::string, std::vector<const Row*>>> by_reason;
  for (const Row& row : rows) {
    if (!row.result.has("skipped")) continue;
    const std::string reason = row.result.reason();
    const auto found = std::find_if(by_reason.begin(), by_reason.end(),
                                    [&](const auto& entry) { return entry.first == reason; });
    if (found == by_reason.end())
      by_reason.push_back({reason, {&row}});
    else
      found->second.push_back(&row);
  }
  std::string text;
  for (const auto& [reason, alike] : by_reason) {
    if (alike.size() < many) {
      for (const Row* row : alike) text += table.row(*row);
      continue;
    }
    std::string names;
    for (const Row* row : alike) names += (names.empty() ? "" : ", ") + row->bench_case.workload->name();
    text += wrapped(fmt::format("{} rows skipped: {}: {}", alike.size(), reason, names), "    ");
  }
  return text;
}

/// A line for each row whose time cannot be.
std::string impossible_rows(std::span<const Row> rows) {
  std::string text;
  for (const Row& row : rows)
    if (const std::string why = row.why_impossible(); !why.empty())
      text += wrapped(fmt::format("# {} {}", row.bench_case.workload->name(), why), "#   ");
  return text;
}

}  // namespace

Display::Display(const Options& options, const Results& results, const Comparisons& comparisons, int launches)
    : options_(options),
      results_(results),
      comparisons_(comparisons),
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
  if (!has_heading_ && (results_.running() || results_.count() > 0)) {
    print(heading(options_));
    has_heading_ = true;
  }
  if (!has_heading_) return;
  for (; next_notice_ < results_.notices().size(); ++next_notice_) {
    const auto& [about, text] = results_.notices()[next_notice_];
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
  const auto first = results_.is_reversed() ? contests_.begin() : here + 1;
  const auto last = results_.is_reversed() ? here : contests_.end();
  if (const std::optional<int> running = results_.running())
    return std::any_of(first, last, [&](const auto& later) { return holds(later, *running); });
  return std::all_of(contests_[contest].begin(), contests_[contest].end(),
                     [this](int index) { return results_.is_settled(index); });
}

void Display::refresh() {
  print_heading();
  progress_.look(results_);
  if (launches_ > 0 && results_.launch() == launches_)
    while (next_contest_ < contests_.size() && is_over(next_contest_))
      print_contest(contests_[next_contest_++]);
  if (line_.is_due()) line_.show(progress_.what(results_, launches_), progress_.left(results_, launches_));
}

/// The lines above the rows of a contest: an empty line or its title, and the titles of the table
/// if they are not those of the contest before.
std::string Display::title_of(const std::vector<Row>& rows) {
  const Case& one = rows[0].bench_case;
  std::string title = differences_.of_contest(one);
  if (!title.empty())
    title = wrapped("# " + title, "#   ");
  else if (rows.size() > 1 || rows_before_ > 1)
    title = "\n";
  if (rows_before_ == 0 && title == "\n") title.clear();
  rows_before_ = rows.size();
  if (table_ && is_of_simulated_ == is_simulated(one)) return title;
  is_of_simulated_ = is_simulated(one);
  int launches = 1;  // that its rows are of: an interrupted run began one more
  for (const Row& row : rows) launches = std::max(launches, row.launches);
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
std::string Display::warning_of(const std::vector<Row>& rows) {
  auto found = std::find_if(rows.begin(), rows.end(), is_oversubscribed);
  if (found == rows.end()) found = std::find_if(rows.begin(), rows.end(), is_throttled);
  if (has_warned_ || found == rows.end()) return {};
  has_warned_ = true;
  return wrapped(reason_to_wait(*found), "#   ");
}

void Display::print_contest(const std::vector<int>& contest) {
  const std::vector<Row> rows = ranked_rows(contest, options_.cases, results_, comparisons_);
  if (rows.empty()) return;
  std::string text = warning_of(rows) + title_of(rows);
  const auto mode = [&](std::size_t row) { return mode_of(rows[row]); };
  const bool has_modes = mode(0) != mode(rows.size() - 1);
  for (std::size_t first = 0, last = 0; first < rows.size(); first = last) {
    while (last < rows.size() && mode(last) == mode(first)) ++last;
    if (has_modes) text += title_of_mode(mode(first));
    text += rows_of(std::span(rows).subspan(first, last - first));
  }
  const std::string impossible = impossible_rows(rows);
  names_impossible_ |= !impossible.empty();
  print(text + impossible);
}

std::string Display::rows_of(std::span<const Row> rows) {
  std::string text;
  for (const Row& row : rows) {
    if (!row.result.has("skipped")) text += table_->row(row);
    prediction_errors_.add(row);
    beats_bound_ |= std::round(share_of_bound(row).value_or(0)) > 100;
  }
  return text + skipped_rows(rows, *table_);
}

void Display::finish() {
  line_.clear();
  print_heading();
  while (next_contest_ < contests_.size()) print_contest(contests_[next_contest_++]);
  if (beats_bound_ && !names_impossible_)
    print(
        wrapped("# Above 100 % of its bound a row beats the link as this launch measured it: alpha and beta "
                "have an error too, and so has the time.",
                "#   "));
  print(prediction_errors_.table());
  for (const auto& [about, text] : results_.notices())
    if (about == about_trace) print(text);
}

}  // namespace baton
