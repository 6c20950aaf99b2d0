// SPDX-License-Identifier: Apache-2.0
// The columns of the table of collectives.
#include "harness/columns.hpp"

#include <fmt/format.h>

#include <cmath>

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

std::string blocks(const Record& record) {
  if (!record.question.collective->cuts_blocks) return nothing;
  return fmt::format("{}{}", record.blocks, record.question.blocks == auto_blocks ? "*" : "");
}

std::string gigabytes_a_second(double bytes, const Record& record) {
  return number(bytes / record.summary.median * 1e-9);
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

/// What the case was: these columns stand in a skipped row too.
const std::vector<Column>& question_columns() {
  static const std::vector<Column> all{
      {"collective", "", -22, [](const Record& r) { return r.question.collective->name; }},
      {"run by", "", -10,
       [](const Record& r) {
         return r.question.executor + (r.implementation == "schedule" ? "" : " native");
       }},
      {"P", "", 5, [](const Record& r) { return fmt::format("{}", r.question.ranks); }},
      {"dir", "", 3,
       [](const Record& r) {
         return std::string(r.question.direction == Direction::forward ? "fwd" : "rev");
       }},
      {"state", "B", 7, [](const Record& r) { return binary_size(r.question.shape.state_bytes()); }},
      {"K", "", 4, blocks},
  };
  return all;
}

const std::vector<Column>& answer_columns() {
  static const std::vector<Column> all{
      {"mean", "us", 8, microseconds(&Summary::mean)},
      {"median", "us", 8, microseconds(&Summary::median)},
      {"95 % interval", "us", 17, timed(interval)},
      {"min", "us", 8, microseconds(&Summary::min)},
      {"p95", "us", 8, microseconds(&Summary::p95)},
      {"max", "us", 8, microseconds(&Summary::max)},
      {"first", "us", 8, timed([](const Record& r) { return number(r.samples.first_seconds * 1e6); })},
      {"algbw", "GB/s", 6, timed([](const Record& r) { return gigabytes_a_second(r.payload_bytes(), r); })},
      {"busbw", "GB/s", 6, timed([](const Record& r) { return gigabytes_a_second(r.port_bytes(), r); })},
      {"sent", "B", 9,
       [](const Record& r) { return r.traffic ? binary_size(r.traffic->sent_bytes) : nothing; }},
      {"hops", "", 4,
       [](const Record& r) { return r.traffic ? fmt::format("{}", r.traffic->hops) : nothing; }},
      {"bound", "us", 8,
       [](const Record& r) {
         const auto bound = r.bound_seconds();
         return bound ? number(*bound * 1e6) : nothing;
       }},
      {"of it", "%", 5, timed(share_of_bound)},
      {"ratio", "", 16, timed(ratio)},
      {"wrong", "", 5, [](const Record& r) { return fmt::format("{}", r.wrong); }},
  };
  return all;
}

std::string aligned(const std::string& text, int width) {
  return width < 0 ? fmt::format("{:<{}} ", text, -width) : fmt::format("{:>{}} ", text, width);
}

}  // namespace

const std::vector<Column>& columns() {
  static const std::vector<Column> all = [] {
    auto both = question_columns();
    both.insert(both.end(), answer_columns().begin(), answer_columns().end());
    return both;
  }();
  return all;
}

std::string table_head() {
  std::string titles, units;
  for (const Column& column : columns()) {
    titles += aligned(column.title, column.width);
    units += aligned(column.unit, column.width);
  }
  return titles + "\n" + units + "\n";
}

std::string table_row(const Record& record) {
  std::string row;
  for (const Column& column : record.skipped.empty() ? columns() : question_columns())
    row += aligned(column.cell(record), column.width);
  return row + (record.skipped.empty() ? "" : "skipped: " + record.skipped) + "\n";
}

}  // namespace baton
