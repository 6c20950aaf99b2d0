// SPDX-License-Identifier: Apache-2.0
// The columns of the table of collectives.
#include "harness/report/columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collectives/collective.hpp"
#include "collectives/executors/executor.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton {
namespace {

constexpr auto nothing = "-";

/// Four significant digits or all digits before the point, whichever is longer.
std::string number(double value) {
  const int before = value >= 1 ? static_cast<int>(std::log10(value)) + 1 : 1;
  return fmt::format("{:.{}f}", value, std::max(0, std::min(3, 4 - before)));
}

std::string binary_size(std::int64_t bytes) {
  if (bytes % (1 << 20) == 0 && bytes > 0) return fmt::format("{}M", bytes >> 20);
  if (bytes % (1 << 10) == 0 && bytes > 0) return fmt::format("{}K", bytes >> 10);
  return fmt::format("{}", bytes);
}

/// A cell that has nothing to say where there was no timing.
auto timed(std::function<std::string(const Record&)> cell) {
  return [cell](const Record& record) { return record.is_timed() ? cell(record) : nothing; };
}

auto microseconds(double Summary::*member) {
  return timed([member](const Record& record) { return number(record.summary.*member * 1e6); });
}

std::string text_of(const Record& record, const char* key) {
  nlohmann::ordered_json json;
  record.question.workload->describe(json);
  return json.at(key).get<std::string>();
}

std::string blocks(const Record& record) {
  if (!record.question.workload->cuts_blocks()) return nothing;
  return fmt::format("{}{}", record.blocks, record.question.blocks == auto_blocks ? "*" : "");
}

/// A rate from bytes that the workload tells for a number of ranks.
auto gigabytes_a_second(double (Workload::*bytes)(int) const) {
  return timed([bytes](const Record& record) {
    const Case& c = record.question;
    const double rate = ((*c.workload).*bytes)(c.ranks) / record.summary.median * 1e-9;
    return std::isfinite(rate) ? number(rate) : nothing;  // a simulated rank alone does nothing in no time
  });
}

std::string share_of_bound(const Record& record) {
  const auto bound = record.bound_seconds();
  return bound ? fmt::format("{:.0f}", 100 * *bound / record.summary.median) : nothing;
}

std::string ratio(const Record& record) {
  if (!record.ratio) return nothing;
  return fmt::format("{:.2f} [{:.2f},{:.2f}]", record.ratio->value, record.ratio->ci95[0],
                     record.ratio->ci95[1]);
}

std::string interval(const Record& record) {
  const auto& ci = record.summary.ci95;
  return fmt::format("[{},{}]", number(ci[0] * 1e6), number(ci[1] * 1e6));
}

std::string run_by(const Record& record) {
  return record.question.executor + (record.implementation == "schedule" ? "" : " native");
}

std::string direction(const Record& record) {
  return text_of(record, "direction") == "forward" ? "fwd" : "rev";
}

std::string bound(const Record& record) {
  const auto seconds = record.bound_seconds();
  return seconds ? number(*seconds * 1e6) : nothing;
}

std::string verified(const Record& record) {
  return fmt::format("{}", record.verification().at("verified_tokens").get<std::int64_t>());
}

std::string first(const Record& record) {
  const auto& seconds = record.samples.first_seconds;
  return seconds ? number(*seconds * 1e6) : nothing;
}

std::string hidden(const Record& record) {
  return record.hidden ? fmt::format("{:.0f}", 100 * *record.hidden) : nothing;
}

/// Of a row that ran what the model says it takes; of a simulated one only whether it reaches beyond its calibration.
std::string predicted(const Record& record) {
  const std::string mark = record.extrapolated.empty() ? "" : "~";
  if (record.predicted_seconds) return number(*record.predicted_seconds * 1e6) + mark;
  return mark.empty() ? nothing : mark;
}

const Column ranks{"P", "", 5, [](const Record& r) { return fmt::format("{}", r.question.ranks); }};
const Column cadence{"cadence", "", -9,
                     [](const Record& r) { return std::string(to_string(r.question.cadence)); }};
const Column state{"state", "B", 7,
                   [](const Record& r) { return binary_size(r.question.workload->state_bytes()); }};
const Column sent{"sent", "B", 9,
                  [](const Record& r) { return r.traffic ? binary_size(r.traffic->sent_bytes) : nothing; }};
const Column hops{"hops", "", 4,
                  [](const Record& r) { return r.traffic ? fmt::format("{}", r.traffic->hops) : nothing; }};
const Column ratio_to_baseline{"ratio", "", 16, timed(ratio)};
const Column model{"predicted", "us", 9, timed(predicted)};
const Column wrong{"wrong", "", 5, [](const Record& r) { return fmt::format("{}", r.wrong); }};

const Column error{"error", "", 7, [](const Record& r) {
                     return r.tolerance > 0 ? fmt::format("{:.1e}", r.relative_error) : nothing;
                   }};

/// The times of the rounds, with `more` behind them.
std::vector<Column> timings_and(const std::vector<Column>& more) {
  std::vector<Column> all{
      {"mean", "us", 8, microseconds(&Summary::mean)},
      {"median", "us", 8, microseconds(&Summary::median)},
      {"95 % interval", "us", 17, timed(interval)},
      {"min", "us", 8, microseconds(&Summary::min)},
      {"p95", "us", 8, microseconds(&Summary::p95)},
      {"max", "us", 8, microseconds(&Summary::max)},
      {"first", "us", 8, timed(first)},
  };
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string aligned(const std::string& text, int width) {
  return width < 0 ? fmt::format("{:<{}} ", text, -width) : fmt::format("{:>{}} ", text, width);
}

/// Flush left, as wide as the longest name in a registry.
template <class Entries>
int width_for(const Entries& entries, int least, int more = 0) {
  int width = least;
  for (const auto* entry : entries) width = std::max(width, static_cast<int>(entry->name.size()) + more);
  return -width;
}

/// Of the executor and the word "native".
int width_for_run_by() { return width_for(executors(), 10, 7); }

/// The cells one after the other, no space behind the last.
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
      {{"collective", "", width_for(collectives(), 22),
        [](const Record& r) { return r.question.workload->name(); }},
       {"run by", "", width_for_run_by(), run_by},
       ranks,
       {"dir", "", -3, direction},
       cadence,
       state,
       {"K", "", 4, blocks}},
      timings_and({{"algbw", "GB/s", 6, gigabytes_a_second(&Workload::payload_bytes)},
                   {"busbw", "GB/s", 6, gigabytes_a_second(&Workload::port_bytes)},
                   sent,
                   hops,
                   {"bound", "us", 8, bound},
                   {"of it", "%", 5, timed(share_of_bound)},
                   model,
                   ratio_to_baseline,
                   error,
                   wrong}),
  };
  return table;
}

const Table& operator_table() {
  static const Table table{
      {{"method", "", width_for(sp_methods(), 22),
        [](const Record& r) { return r.question.workload->name(); }},
       {"run by", "", width_for_run_by(), run_by},
       ranks,
       {"pass", "", -8, [](const Record& r) { return text_of(r, "pass"); }},
       {"mode", "", -12, [](const Record& r) { return text_of(r, "mode"); }},
       cadence,
       state,
       {"K", "", 4, blocks}},
      timings_and({sent,
                   hops,
                   {"hidden", "%", 6, timed(hidden)},
                   model,
                   ratio_to_baseline,
                   {"verified", "tokens", 8, verified},
                   error,
                   wrong}),
  };
  return table;
}

std::string Table::head() const {
  return line({&question, &answer}, [](const Column& column) { return column.title; }) + "\n" +
         line({&question, &answer}, [](const Column& column) { return column.unit; }) + "\n";
}

std::string Table::row(const Record& record) const {
  const auto cell = [&](const Column& column) { return column.cell(record); };
  if (!record.skipped.empty()) return line({&question}, cell) + " skipped: " + record.skipped + "\n";
  return line({&question, &answer}, cell) + "\n";
}

}  // namespace baton
