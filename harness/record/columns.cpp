// SPDX-License-Identifier: Apache-2.0
#include "harness/record/columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "harness/record/cells.hpp"
#include "harness/record/record.hpp"

namespace baton {
namespace {

AxisValues axes_of(const Record& record) { return record.bench_case.workload->axes(); }

std::string time(double seconds, Form form) {
  return form == Form::brief ? short_time(seconds) : number(seconds * 1e6);
}

std::string time(const std::optional<double>& seconds, Form form) {
  return seconds ? time(*seconds, form) : no_value;
}

template <double Summary::*member>
std::string time_of(const Record& record, Form form) {
  return time(record.shown().*member, form);
}

std::string interval(const Record& record, Form form) {
  const auto& ci = record.shown().ci95;
  return fmt::format("[{},{}]", time(ci[0], form), time(ci[1], form));
}

/// The rate in GB/s of the bytes that the workload states for the ranks of the case.
template <double (Workload::*bytes)(int) const>
std::string rate_of(const Record& record, Form) {
  const Case& c = record.bench_case;
  const double rate = ((*c.workload).*bytes)(c.ranks) / record.shown().median * 1e-9;
  return std::isfinite(rate) ? number(rate) : no_value;  // a simulated rank alone takes no time
}

/// The name with its mark: ~ for a simulated row, ! for one whose ranks take turns on a core or a
/// GPU.
std::string marked_name(const Record& record, Form) {
  const bool is_simulated = !find_backend(record.bench_case.executor).is_measured;
  const bool is_shared =
      (record.conditions && record.conditions->oversubscribed()) || record.bench_case.ranks_per_gpu > 1;
  return (is_simulated ? "~" : is_shared ? "!" : "") + row_name(record.bench_case);
}

/// The executor, and the word "native" where one stood in for the schedule.
std::string run_by(const Record& record, Form) {
  return record.bench_case.executor + (record.implementation == "schedule" ? "" : " native");
}

std::string state(const Record& record, Form form) {
  const std::int64_t bytes = record.bench_case.workload->state_bytes();
  return form == Form::brief ? short_size(bytes) : binary_size(bytes);
}

/// The number of blocks, with * if the model chose it.
std::string blocks_that_ran(const Record& record, Form) {
  if (!record.bench_case.workload->cuts_blocks()) return no_value;
  const std::string blocks =
      record.blocks < 100000 ? fmt::format("{}", record.blocks) : short_size(record.blocks);
  return blocks + (record.bench_case.blocks == auto_blocks ? "*" : "");
}

/// The predicted time of a measured row, with ~ if it goes beyond the calibration; a simulated row
/// has the ~ alone.
std::string predicted(const Record& record, Form form) {
  const std::string mark = record.extrapolated.empty() ? "" : "~";
  if (record.predicted_seconds) return time(*record.predicted_seconds, form) + mark;
  return mark.empty() ? no_value : mark;
}

std::string ratio(const Record& record, Form) {
  const auto& ratio = record.shown_standing().ratio;
  if (!ratio || !std::isfinite(ratio->value)) return no_value;
  return fmt::format("{:.2f} [{:.2f},{:.2f}]", ratio->value, ratio->ci95[0], ratio->ci95[1]);
}

/// Elements, or tokens a rank times heads, that were compared.
std::string verified_amount(const Record& record, Form) {
  const Verified& verified = record.verified;
  if (!record.bench_case.workload->is_layer()) return short_size(verified.elements);
  return fmt::format("{}x{}", short_size(verified.tokens), verified.heads.size());
}

/// The rank that was last most often, and its share of the rounds in percent.
std::string last_rank(const Record& record, Form) {
  const auto rounds = record.rounds_as_last();
  if (rounds.empty()) return no_value;
  const auto most = std::max_element(rounds.begin(), rounds.end());
  return fmt::format("{}: {:.0f}", most - rounds.begin(),
                     100.0 * *most / std::reduce(rounds.begin(), rounds.end()));
}

/// The way in which tables show a key: the width of its cells, their text, and their unit if it is
/// not that of the schema.
struct Shown {
  schema::Key key;
  int width;
  std::string (*cell)(const Record&, Form);
  std::string_view unit = {};
};

const Shown shown[] = {
    {"name", -22, marked_name},
    {"executor", -10, run_by},
    {"ranks", 5, [](const Record& r, Form) { return fmt::format("{}", r.bench_case.ranks); }},
    {"direction", -3,
     [](const Record& r, Form) -> std::string {
       return axes_of(r).text("direction") == "forward" ? "fwd" : "rev";
     }},
    {"pass", -8, [](const Record& r, Form) { return axes_of(r).text("pass"); }},
    {"mode", -12, [](const Record& r, Form) { return axes_of(r).text("mode"); }},
    {"line", -5, [](const Record& r, Form) { return axes_of(r).text("line"); }},
    {"cadence", -9, [](const Record& r, Form) { return std::string(to_string(r.bench_case.cadence)); }},
    {"tokens", 6, [](const Record& r, Form) { return short_size(axes_of(r).whole("tokens")); }},
    {"state_bytes", 7, state},
    {"blocks", 4, blocks_that_ran},
    {"mean_seconds", 8, time_of<&Summary::mean>},
    {"median_seconds", 8, time_of<&Summary::median>},
    {"ci95_seconds", 17, interval},
    {"min_seconds", 8, time_of<&Summary::min>},
    {"p50_seconds", 8, time_of<&Summary::p50>},
    {"p95_seconds", 8, time_of<&Summary::p95>},
    {"p99_seconds", 8, time_of<&Summary::p99>},
    {"max_seconds", 8, time_of<&Summary::max>},
    {"first_seconds", 8, [](const Record& r, Form form) { return time(r.samples.first_seconds, form); }},
    {"rounds_as_last", 9, last_rank, "rank: %"},
    {"algbw_bytes_per_second", 6, rate_of<&Workload::payload_bytes>},
    {"busbw_bytes_per_second", 6, rate_of<&Workload::port_bytes>},
    {"sent_bytes", 9,
     [](const Record& r, Form) { return r.cost ? binary_size(r.cost->sent_bytes) : no_value; }},
    {"hops", 4, [](const Record& r, Form) { return r.cost ? fmt::format("{}", r.cost->hops) : no_value; }},
    {"tensor_bytes", 6,
     [](const Record& r, Form) { return r.footprint ? short_size(r.footprint->total()) : no_value; }},
    {"bound_seconds", 8, [](const Record& r, Form form) { return time(r.bound_seconds(), form); }},
    {"predicted_seconds", 9, predicted},
    {"ratio", 16, ratio},
    {"ratio_to", -25,
     [](const Record& r, Form) {
       const std::string& row = r.shown_standing().ratio_to;
       return row.empty() ? no_value : row;
     }},
    {"hidden", 6,
     [](const Record& r, Form) {
       const auto& hidden = r.shown_standing().hidden;
       return hidden ? fmt::format("{:.0f}", 100 * *hidden) : no_value;
     },
     "%"},
    {"exposed_seconds", 7,
     [](const Record& r, Form) {
       const auto& seconds = r.shown_standing().exposed_seconds;
       return seconds ? fmt::format("{:.3g}", *seconds * 1e3) : no_value;
     },
     "ms"},
    {"verified_elements", 8, verified_amount, "elements"},
    {"relative_error", 7,
     [](const Record& r, Form) {
       return r.verified.tolerance > 0 ? fmt::format("{:.1e}", r.verified.relative_error) : no_value;
     }},
    {"wrong", 5, [](const Record& r, Form) { return fmt::format("{}", r.verified.wrong); }},
};

/// The unit of cells in tables for a unit of records; empty for units that tables do not show.
std::string unit_in_tables(std::string_view unit) {
  if (unit == "seconds") return "us";
  if (unit == "bytes") return "B";
  return unit == "bytes per second" ? "GB/s" : "";
}

/// Tokens of a rank in a second.
double tokens_per_second(const Record& record) {
  return static_cast<double>(axes_of(record).whole("tokens")) / record.shown().median;
}

std::string mfu(const Record& record) {
  const std::optional<double> share = record.peak_share(record.shown().median);
  return share ? fmt::format("{:.1f}", 100 * *share) : no_value;
}

/// The ratio, with its interval if more than one round tells it. Two rows that take no time on a
/// simulated machine have none.
std::string with_interval_if_known(const std::optional<Ratio>& ratio, const Record& record) {
  if (!ratio || !std::isfinite(ratio->value)) return no_value;
  return record.samples.seconds.size() > 1 ? with_interval(*ratio) : number(ratio->value);
}

}  // namespace

Column Column::titled(std::string other) const { return {std::move(other), unit, width, cell}; }

Column Column::in(std::string other_unit) const { return {title, std::move(other_unit), width, cell}; }

Column Column::of_width(int other) const { return {title, unit, other, cell}; }

Column column(schema::Key key, Form form) {
  const auto found =
      std::find_if(std::begin(shown), std::end(shown), [key](const Shown& one) { return one.key == key; });
  if (found == std::end(shown)) throw std::logic_error("no table shows a key that was asked for");
  const schema::Field& field = key.field();
  const std::string unit = found->unit.empty() ? unit_in_tables(field.unit) : std::string(found->unit);
  return {std::string(field.title), unit, found->width,
          [cell = found->cell, form](const Record& record) { return cell(record, form); }};
}

std::optional<double> share_of_bound(const Record& record) {
  const auto bound = record.bound_seconds();
  const double median = record.shown().median;
  return bound && median > 0 ? std::optional(100 * *bound / median) : std::nullopt;
}

Column bound_share() {
  return {"% bound", "", 7, [](const Record& record) {
            const auto share = share_of_bound(record);
            return share ? fmt::format("{:.0f}", *share) : no_value;
          }};
}

Column against_the_lowest() {
  return {"vs lowest", "", 19, [](const Record& record) {
            return record.place.is_best ? "lowest" : with_interval_if_known(record.place.ratio, record);
          }};
}

Column step_time() {
  return {"step", "ms", 7, [](const Record& record) { return number(record.shown().median * 1e3); }};
}

Column token_rate() {
  return {"tokens/s", "a rank", 8, [](const Record& record) { return number(tokens_per_second(record)); }};
}

Column flops_utilisation() { return {"MFU", "%", 4, mfu}; }

Column time_over_dp() {
  return {"time over dp", "", 19,
          [](const Record& record) { return with_interval_if_known(record.shown_standing().ratio, record); }};
}

}  // namespace baton
