// SPDX-License-Identifier: Apache-2.0
// The tables of both benches with all their columns, and how a table makes lines of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "collectives/collective.hpp"
#include "harness/report/table.hpp"

namespace baton {
namespace {

constexpr auto interval_title = "95 % interval";

/// A cell that is empty in rows without timings.
auto timed(std::function<std::string(const Record&)> cell) {
  return [cell](const Record& record) { return record.is_timed() ? cell(record) : no_value; };
}

auto microseconds(double Summary::*member) {
  return timed([member](const Record& record) { return number(record.shown().*member * 1e6); });
}

/// The rate of bytes that the workload states for a number of ranks.
auto gigabytes_a_second(double (Workload::*bytes)(int) const) {
  return timed([bytes](const Record& record) {
    const Case& c = record.bench_case;
    const double rate = ((*c.workload).*bytes)(c.ranks) / record.shown().median * 1e-9;
    return std::isfinite(rate) ? number(rate) : no_value;  // a simulated rank alone takes no time
  });
}

std::string ratio(const Record& record) {
  const auto& ratio = record.shown_standing().ratio;
  if (!ratio) return no_value;
  return fmt::format("{:.2f} [{:.2f},{:.2f}]", ratio->value, ratio->ci95[0], ratio->ci95[1]);
}

std::string interval(const Record& record) {
  const auto& ci = record.shown().ci95;
  return fmt::format("[{},{}]", number(ci[0] * 1e6), number(ci[1] * 1e6));
}

std::string direction(const Record& record) {
  return record.bench_case.workload->axes().text("direction") == "forward" ? "fwd" : "rev";
}

/// The text of an axis.
auto text_of(schema::Key key) {
  return [key](const Record& record) { return record.bench_case.workload->axes().text(key); };
}

std::string bound(const Record& record) {
  const auto seconds = record.bound_seconds();
  return seconds ? number(*seconds * 1e6) : no_value;
}

std::string first(const Record& record) {
  const auto& seconds = record.samples.first_seconds;
  return seconds ? number(*seconds * 1e6) : no_value;
}

/// The rank that was last most often, and its share of the rounds in percent.
std::string last_rank(const Record& record) {
  const auto rounds = record.rounds_as_last();
  if (rounds.empty()) return no_value;
  const auto most = std::max_element(rounds.begin(), rounds.end());
  return fmt::format("{}: {:.0f}", most - rounds.begin(),
                     100.0 * *most / std::reduce(rounds.begin(), rounds.end()));
}

/// The predicted time of a measured row, with ~ if it goes beyond the calibration; a simulated row
/// has the ~ alone.
std::string predicted(const Record& record) {
  const std::string mark = record.extrapolated.empty() ? "" : "~";
  if (record.predicted_seconds) return number(*record.predicted_seconds * 1e6) + mark;
  return mark.empty() ? no_value : mark;
}

const Column ranks{"P", "", 5, [](const Record& r) { return fmt::format("{}", r.bench_case.ranks); }};
const Column timing{"cadence", "", -9,
                    [](const Record& r) { return std::string(to_string(r.bench_case.timing)); }};
const Column state{"state", "B", 7,
                   [](const Record& r) { return binary_size(r.bench_case.workload->state_bytes()); }};
const Column sent{"sent", "B", 9,
                  [](const Record& r) { return r.cost ? binary_size(r.cost->sent_bytes) : no_value; }};
const Column hops{"hops", "", 4,
                  [](const Record& r) { return r.cost ? fmt::format("{}", r.cost->hops) : no_value; }};
const Column ratio_to_baseline{"ratio", "", 16, timed(ratio)};
const Column model{"predicted", "us", 9, timed(predicted)};
const Column wrong{"wrong", "", 5, [](const Record& r) { return fmt::format("{}", r.verified.wrong); }};

const Column error{"error", "", 7, [](const Record& r) {
                     return r.verified.tolerance > 0 ? fmt::format("{:.1e}", r.verified.relative_error)
                                                     : no_value;
                   }};

/// The columns of times, followed by `more`.
std::vector<Column> timings_and(const std::vector<Column>& more) {
  std::vector<Column> all{
      {"mean", "us", 8, microseconds(&Summary::mean)},
      {"median", "us", 8, microseconds(&Summary::median)},
      {interval_title, "us", 17, timed(interval)},
      {"min", "us", 8, microseconds(&Summary::min)},
      {"p95", "us", 8, microseconds(&Summary::p95)},
      {"max", "us", 8, microseconds(&Summary::max)},
      {"first", "us", 8, timed(first)},
  };
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// `text` in its column. Text that is aligned to the left and too long has a line of its own.
std::string aligned(const std::string& text, int width) {
  if (width >= 0) return fmt::format("{:>{}} ", text, width);
  const bool is_long = static_cast<int>(text.size()) > -width;
  return is_long ? text + "\n" + std::string(1 - width, ' ') : fmt::format("{:<{}} ", text, -width);
}

/// The width of a left-aligned column that holds names of so many characters with a mark.
int width_for(int characters) { return -std::max(22, characters + 1); }

/// The width of a backend's name and the word "native".
int width_for_run_by() {
  int width = 10;
  for (const Backend& backend : backends())
    width = std::max(width, static_cast<int>(backend.name.size()) + 7);
  return -width;
}

/// The cells one after the other, without trailing spaces.
std::string line(const std::vector<const std::vector<Column>*>& parts,
                 const std::function<std::string(const Column&)>& cell) {
  std::string text;
  for (const auto* part : parts)
    for (const Column& column : *part) text += aligned(cell(column), column.width);
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

}  // namespace

const Table& collective_table() {
  static const Table table{
      {{"collective", "", width_for(longest_name(collectives())), marked_name},
       {"run by", "", width_for_run_by(), run_by},
       ranks,
       {"dir", "", -3, direction},
       timing,
       state,
       {"K", "", 4, blocks_that_ran}},
      timings_and({{"algbw", "GB/s", 6, gigabytes_a_second(&Workload::payload_bytes)},
                   {"busbw", "GB/s", 6, gigabytes_a_second(&Workload::port_bytes)},
                   sent,
                   hops,
                   {"bound", "us", 8, bound},
                   {"% bound", "", 7, timed(share_of_bound)},
                   model,
                   ratio_to_baseline,
                   {"verified", "elements", 8, verified_amount},
                   error,
                   wrong}),
  };
  return table;
}

Table operator_table(int longest_method) {
  return {
      {{"method", "", width_for(longest_method), marked_name},
       {"run by", "", width_for_run_by(), run_by},
       ranks,
       {"pass", "", -8, text_of("pass")},
       {"mode", "", -12, text_of("mode")},
       timing,
       state,
       {"K", "", 4, blocks_that_ran}},
      timings_and({sent,
                   hops,
                   {"memory", "B", 6, memory},
                   {"hidden", "%", 6, timed(hidden_share)},
                   model,
                   ratio_to_baseline,
                   {"verified", "tok x heads", 11, verified_amount},
                   error,
                   wrong}),
  };
}

Table within_one_launch(Table table) {
  for (Column& column : table.answer)
    if (column.title == interval_title) column.title = "within one launch";
  return table;
}

Table wide(Table table) {
  const std::vector<Column> more{{"p50", "us", 8, microseconds(&Summary::p50)},
                                 {"p99", "us", 8, microseconds(&Summary::p99)},
                                 {"last", "rank: %", 9, timed(last_rank)}};
  table.answer.insert(table.answer.end(), more.begin(), more.end());
  return table;
}

std::string Table::head() const {
  return line({&bench_case, &answer}, [](const Column& column) { return column.title; }) + "\n" +
         line({&bench_case, &answer}, [](const Column& column) { return column.unit; }) + "\n";
}

std::string Table::row(const Record& record) const {
  const auto cell = [&](const Column& column) { return column.cell(record); };
  std::string end;
  if (record.failure)
    end = "failed: " + record.failure->reason;
  else if (!record.skipped.empty())
    end = "skipped: " + record.skipped;
  else if (record.verified.wrong > 0)
    end =
        fmt::format("wrong: {} wrong elements, first {}", record.verified.wrong, record.verified.first_wrong);
  if (end.empty()) return line({&bench_case, &answer}, cell) + "\n";
  const std::string row = line({&bench_case}, cell) + "  " + end;
  return fits_terminal ? wrapped(row, "    ") : row + "\n";
}

}  // namespace baton
