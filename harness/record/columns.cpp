// SPDX-License-Identifier: Apache-2.0
#include "harness/record/columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <string_view>
#include <utility>

#include "harness/record/cells.hpp"
#include "harness/record/mark.hpp"
#include "harness/record/row.hpp"

namespace baton {
namespace {

using schema::Field;
using schema::Key;
using schema::Type;

std::string time(double seconds, Form form) {
  return form == Form::brief ? short_time(seconds) : number(seconds * 1e6);
}

std::string bytes(std::int64_t count, Form form) {
  return form == Form::brief ? short_size(count) : binary_size(count);
}

/// The value of a key, as its type and its unit have it shown.
std::string plain(const Row& row, Key key, Form form) {
  const Field& field = key.field();
  if (!row.result.has(key)) return no_value;
  if (field.type == Type::text) return row.result.text(key).empty() ? no_value : row.result.text(key);
  if (field.type == Type::whole)
    return field.unit == "bytes" ? bytes(row.result.whole(key), form)
                                 : fmt::format("{}", row.result.whole(key));
  if (field.type == Type::interval) {
    const auto ends = row.result.value<Interval>(key);
    return fmt::format("[{},{}]", time(ends[0], form), time(ends[1], form));
  }
  const double value = row.result.real(key);
  if (!std::isfinite(value)) return no_value;  // a simulated rank alone takes no time
  if (field.unit.empty()) return number(value);
  return field.unit == "seconds" ? time(value, form) : number(value * 1e-9);
}

/// The name with its mark: ~ for a simulated row, ! for one whose ranks take turns on a core or a
/// GPU.
std::string marked_name(const Row& row, Form) {
  return (row.is_simulated() ? "~" : row.is_crowded() ? "!" : "") + row.bench_case.workload->title();
}

/// The executor, and what stood in for the schedule.
std::string run_by(const Row& row, Form) {
  return row.bench_case.backend->name + mark_of(row.result.text("implementation"));
}

/// The number of blocks, with * if the model chose it.
std::string blocks_that_ran(const Row& row, Form) {
  if (!row.bench_case.workload->cuts_blocks()) return no_value;
  const std::int64_t count = row.result.whole("blocks");
  const std::string blocks = count < 100000 ? fmt::format("{}", count) : short_size(count);
  return blocks + (row.bench_case.blocks == auto_blocks ? "*" : "");
}

/// The predicted time of a measured row, with ~ if it goes beyond the calibration; a simulated row
/// has the ~ alone.
std::string predicted(const Row& row, Form form) {
  const std::string mark = row.result.text("extrapolated").empty() ? "" : "~";
  if (row.result.has("predicted_seconds")) return plain(row, "predicted_seconds", form) + mark;
  return mark.empty() ? no_value : mark;
}

/// The ratio to the baseline.
std::optional<Ratio> ratio_of(const Row& row) {
  const auto value = row.result.known<double>("ratio");
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return Ratio{*value, row.result.value<Interval>("ratio_ci95")};
}

std::string ratio(const Row& row, Form) {
  const auto ratio = ratio_of(row);
  return ratio ? fmt::format("{:.2f} [{:.2f},{:.2f}]", ratio->value, ratio->ci95[0], ratio->ci95[1])
               : no_value;
}

/// Elements, or tokens a rank times heads, that were compared.
std::string verified_amount(const Row& row, Form) {
  if (!row.bench_case.workload->is_layer()) return short_size(row.result.whole("verified_elements"));
  return fmt::format("{}x{}", short_size(row.result.whole("verified_tokens")),
                     row.result.whole("verified_heads"));
}

/// The rank that was last most often, and its share of the rounds in percent.
std::string last_rank(const Row& row, Form) {
  const auto rounds = row.result.value<std::vector<int>>("rounds_as_last");
  if (rounds.empty()) return no_value;
  const auto most = std::max_element(rounds.begin(), rounds.end());
  return fmt::format("{}: {:.0f}", most - rounds.begin(),
                     100.0 * *most / std::reduce(rounds.begin(), rounds.end()));
}

std::string direction(const Row& row, Form) {
  return row.result.text("direction") == "forward" ? "fwd" : "rev";
}

std::string memory(const Row& row, Form) {
  if (!row.result.has("tensor_bytes")) return no_value;
  return short_size(row.result.whole("tensor_bytes") + row.result.whole("scratch_bytes"));
}

std::string percent(const Row& row, Form) {
  const auto share = row.result.known<double>("hidden");
  return share ? fmt::format("{:.0f}", 100 * *share) : no_value;
}

std::string padding(const Row& row, Form) {
  return row.result.has("padding") ? fmt::format("{:.2f}", 100 * row.result.real("padding")) : no_value;
}

std::string exposed(const Row& row, Form) {
  const auto seconds = row.result.known<double>("exposed_seconds");
  return seconds ? fmt::format("{:.3g}", *seconds * 1e3) : no_value;
}

std::string error(const Row& row, Form) {
  return row.result.real("tolerance") > 0 ? fmt::format("{:.1e}", row.result.real("relative_error"))
                                          : no_value;
}

std::string tokens(const Row& row, Form) { return short_size(row.result.whole("tokens")); }

/// How tables show a key in another way than its type and its unit say.
struct Shown {
  Key key;
  std::string (*cell)(const Row&, Form);
  std::string_view unit = {};
};

const Shown shown[] = {
    {"name", marked_name},
    {"executor", run_by},
    {"direction", direction},
    {"tokens", tokens},
    {"blocks", blocks_that_ran},
    {"rounds_as_last", last_rank, "rank: %"},
    {"tensor_bytes", memory},
    {"predicted_seconds", predicted},
    {"ratio", ratio},
    {"hidden", percent, "%"},
    {"padding", padding, "%"},
    {"exposed_seconds", exposed, "ms"},
    {"verified_elements", verified_amount, "elements"},
    {"relative_error", error},
};

/// The unit of cells in tables for a unit of records; empty for units that tables do not show.
std::string unit_in_tables(std::string_view unit) {
  if (unit == "seconds") return "us";
  if (unit == "bytes") return "B";
  return unit == "bytes per second" ? "GB/s" : "";
}

/// The ratio, with its interval if more than one round tells it. Two rows that take no time on a
/// simulated machine have none.
std::string with_interval_if_known(const std::optional<Ratio>& ratio, const Row& row) {
  if (!ratio || !std::isfinite(ratio->value)) return no_value;
  return row.result.value<std::vector<double>>("seconds").size() > 1 ? with_interval(*ratio)
                                                                     : number(ratio->value);
}

}  // namespace

Column Column::titled(std::string other) const { return {std::move(other), unit, width, cell}; }

Column Column::in(std::string other_unit) const { return {title, std::move(other_unit), width, cell}; }

Column Column::of_width(int other) const { return {title, unit, other, cell}; }

Column column(Key key, Form form) {
  const Field& field = key.field();
  const auto own =
      std::find_if(std::begin(shown), std::end(shown), [key](const Shown& one) { return one.key == key; });
  if (own == std::end(shown))
    return {std::string(field.title), unit_in_tables(field.unit), field.width,
            [key, form](const Row& row) { return plain(row, key, form); }};
  const std::string unit = own->unit.empty() ? unit_in_tables(field.unit) : std::string(own->unit);
  return {std::string(field.title), unit, field.width,
          [cell = own->cell, form](const Row& row) { return cell(row, form); }};
}

std::optional<double> share_of_bound(const Row& row) {
  const auto bound = row.result.known<double>("bound_seconds");
  return bound && row.median() > 0 ? std::optional(100 * *bound / row.median()) : std::nullopt;
}

Column bound_share() {
  return {"% bound", "", 7, [](const Row& row) {
            const auto share = share_of_bound(row);
            return share ? fmt::format("{:.0f}", *share) : no_value;
          }};
}

Column against_the_lowest() {
  return {"vs lowest", "", 19, [](const Row& row) {
            return row.is_fastest ? "lowest" : with_interval_if_known(row.to_fastest, row);
          }};
}

Column step_time() {
  return {"step", "ms", 7, [](const Row& row) { return number(row.median() * 1e3); }};
}

Column token_rate() {
  return {"tokens/s", "a rank", 8,
          [](const Row& row) { return number(row.result.real("tokens") / row.median()); }};
}

Column flops_utilisation() {
  return {"MFU", "%", 4, [](const Row& row) {
            const std::optional<double> share = row.peak_share(row.median());
            return share ? fmt::format("{:.1f}", 100 * *share) : no_value;
          }};
}

Column time_over_dp() {
  return {"time over dp", "", 19, [](const Row& row) { return with_interval_if_known(ratio_of(row), row); }};
}

}  // namespace baton
