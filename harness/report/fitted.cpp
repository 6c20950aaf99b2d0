// SPDX-License-Identifier: Apache-2.0
// The default table. Columns whose cells are alike in all rows are left out, and the names take
// what the others leave of a terminal's width.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "harness/report/table.hpp"

namespace baton {
namespace {

using Text = std::function<std::string(const Case&)>;

std::string blocks_asked(const Case& c) {
  return c.workload->cuts_blocks() ? fmt::format("{}", c.blocks) : "";
}

std::set<std::string> distinct(const std::vector<Case>& cases, const Text& text) {
  std::set<std::string> all;
  for (const Case& c : cases) all.insert(text(c));
  all.erase("");
  return all;
}

/// The width of a column with these texts under `title`.
int width_of(const std::set<std::string>& texts, const std::string& title) {
  std::size_t width = title.size();
  for (const std::string& text : texts) width = std::max(width, text.size());
  return static_cast<int>(width);
}

std::string median(const Record& record) { return short_time(record.shown().median); }

std::string interval(const Record& record) {
  const auto& ci = record.shown().ci95;
  return fmt::format("[{},{}]", short_time(ci[0]), short_time(ci[1]));
}

std::string against_best(const Record& record) {
  const auto& [is_best, ratio] = record.place;
  if (is_best) return "fastest";
  if (!ratio) return no_value;
  return record.samples.seconds.size() > 1 ? with_interval(*ratio) : number(ratio->value);
}

std::string bound(const Record& record) {
  const auto seconds = record.bound_seconds();
  return seconds ? short_time(*seconds) : no_value;
}

/// Makes the columns for some cases.
class Fitting {
 public:
  Fitting(const std::vector<Case>& cases, int launches) : cases_(cases), launches_(launches) {
    is_layer_ = cases.front().workload->is_layer();
    is_model_ = cases.front().workload->is_model();
    is_simulated_ = !find_backend(cases.front().executor).is_measured;
  }

  Table table() const {
    Table table{case_columns(),
                is_model_       ? model_columns()
                : is_simulated_ ? simulated_columns()
                                : measured_columns(),
                true};
    const auto used = [&table] {
      int sum = 0;
      for (const auto* columns : {&table.bench_case, &table.answer})
        for (const Column& column : *columns) sum += std::abs(column.width) + 1;
      return sum;
    };
    constexpr int least = 12;
    while (used() + least > terminal_columns) table.answer.pop_back();
    const std::string title = is_layer_ ? "method" : "collective";
    const int longest =
        width_of(distinct(cases_, [](const Case& c) { return "~" + c.workload->name(); }), title);
    const Column of_memory{"memory", "B", 6, memory};
    if (is_layer_ && !is_model_ && used() + longest + of_memory.width + 1 <= terminal_columns)
      table.answer.push_back(of_memory);
    const int width = std::min(longest, terminal_columns - used());
    table.bench_case.insert(table.bench_case.begin(), {title, "", -width, marked_name});
    return table;
  }

 private:
  std::vector<Column> case_columns() const;
  std::vector<Column> measured_columns() const;
  std::vector<Column> simulated_columns() const;
  std::string executor_and_native(const Case& c) const {
    return c.executor + (c.workload->native().empty() ? "" : " native");
  }

  const std::vector<Case>& cases_;
  int launches_;
  bool is_layer_ = false, is_model_ = false, is_simulated_ = false;
};

std::vector<Column> Fitting::case_columns() const {
  std::vector<Column> columns;
  const auto runs = distinct(cases_, [this](const Case& c) { return executor_and_native(c); });
  if (!is_simulated_ && runs.size() > 1) columns.push_back({"run by", "", -width_of(runs, "run by"), run_by});
  const auto ranks = distinct(cases_, [](const Case& c) { return fmt::format("{}", c.ranks); });
  columns.push_back(
      {"P", "", width_of(ranks, "P"), [](const Record& r) { return fmt::format("{}", r.bench_case.ranks); }});
  const std::string size = is_layer_ ? "tokens" : "size";
  columns.push_back({size, "", width_of(distinct(cases_, size_of), size),
                     [](const Record& r) { return size_of(r.bench_case); }});
  if (is_model_) columns.push_back({"line", "", -5, model_line});
  if (distinct(cases_, blocks_asked).size() > 1) columns.push_back({"K", "", 6, blocks_that_ran});
  return columns;
}

std::vector<Column> Fitting::measured_columns() const {
  const std::string over = launches_ == 1 ? "in one launch" : fmt::format("over {} launches", launches_);
  std::vector<Column> columns{{"median", "us", 6, median},
                              {"95 % interval", over, std::max(15, static_cast<int>(over.size())), interval},
                              {"against the", "fastest", 19, against_best}};
  if (!is_layer_) columns.push_back({"bound", "%", 5, share_of_bound});
  if (distinct(cases_, [](const Case& c) { return c.workload->variant(); }).size() > 2)
    columns.push_back({"hidden", "%", 6, hidden_share});
  columns.push_back({"verified", "", 8, verified_amount});
  return columns;
}

std::vector<Column> Fitting::simulated_columns() const {
  std::vector<Column> columns{{"time", "us", 6, median}, {"against the", "fastest", 11, against_best}};
  if (!is_layer_) columns.push_back({"bound", "us", 6, bound});
  if (!is_layer_) columns.push_back({"bound", "%", 5, share_of_bound});
  columns.push_back({"verified", "", 8, verified_amount});
  return columns;
}

}  // namespace

Table fitted_table(const std::vector<Case>& cases, int launches) { return Fitting(cases, launches).table(); }

}  // namespace baton
