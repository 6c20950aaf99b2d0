// SPDX-License-Identifier: Apache-2.0
// The columns of model_bench (docs/models.md).
#include <fmt/format.h>

#include "harness/report/table.hpp"

namespace baton {
namespace {

AxisValues axes_of(const Record& record) { return record.bench_case.workload->axes(); }

/// A cell that is empty in rows without timings.
auto timed(std::function<std::string(const Record&)> cell) {
  return [cell](const Record& record) { return record.is_timed() ? cell(record) : no_value; };
}

double tokens_a_second(const Record& record) {
  return static_cast<double>(axes_of(record).whole("tokens")) / record.shown().median;
}

/// Model flops utilisation: what the tokens need over what the rank could have done.
std::string mfu(const Record& record) {
  const AxisValues axes = axes_of(record);
  if (axes.real("peak_flops") <= 0) return no_value;
  const double sequence =
      static_cast<double>(axes.whole("tokens")) * (axes.text("line") == "full" ? record.bench_case.ranks : 1);
  const double flops = axes.real("flops_a_token") + axes.real("flops_a_pair") * sequence;
  return fmt::format("{:.1f}", 100 * tokens_a_second(record) * flops / axes.real("peak_flops"));
}

std::string over_dp(const Record& record) {
  const auto& ratio = record.shown_standing().ratio;
  if (!ratio) return no_value;
  return record.samples.seconds.size() > 1 ? with_interval(*ratio) : number(ratio->value);
}

std::string exposed(const Record& record) {
  const auto& seconds = record.shown_standing().exposed_seconds;
  return seconds ? fmt::format("{:.3g}", *seconds * 1e3) : no_value;
}

}  // namespace

std::string model_line(const Record& record) { return axes_of(record).text("line"); }

std::vector<Column> model_columns() {
  return {{"step", "ms", 7, timed([](const Record& r) { return number(r.shown().median * 1e3); })},
          {"tokens/s", "a rank", 8, timed([](const Record& r) { return number(tokens_a_second(r)); })},
          {"MFU", "%", 4, timed(mfu)},
          {"time over dp", "", 19, timed(over_dp)},
          {"exposed", "ms", 7, timed(exposed)},
          {"memory", "B", 6, memory},
          {"verified", "", 8, verified_amount}};
}

Table model_table(int longest_method) {
  Table table = operator_table(longest_method);
  table.bench_case.push_back({"line", "", -5, model_line});
  for (const Column& column : model_columns())
    if (column.title != "verified" && column.title != "memory") table.answer.push_back(column);
  return table;
}

}  // namespace baton
