// SPDX-License-Identifier: Apache-2.0
// The wide table has all columns of a bench. The default one leaves out those whose cells are alike
// in all rows, and the names take what the others leave of a terminal's width.
#include "harness/record/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <set>
#include <span>

#include "harness/record/cells.hpp"
#include "harness/record/mark.hpp"
#include "harness/record/row.hpp"

namespace baton {
namespace {

using Columns = std::vector<Column>;

/// The unit of what is verified of a layer.
constexpr auto tokens_by_heads = "tok x heads";

void add(Columns& all, const Columns& more) { all.insert(all.end(), more.begin(), more.end()); }

const char* title_of_names(const Case& one) { return one.workload->is_layer() ? "method" : "collective"; }

/// The width of the column with a backend's name and the word "native"; negative, for text that is
/// aligned to the left.
int width_for_run_by() {
  int width = 10;
  for (const Backend& backend : backends())
    width = std::max(width, static_cast<int>(backend.name.size()) + 7);
  return -width;
}

using Text = std::function<std::string(const Case&)>;

std::set<std::string> distinct(const std::vector<Case>& cases, const Text& text) {
  std::set<std::string> all;
  for (const Case& c : cases) all.insert(text(c));
  all.erase("");
  return all;
}

/// The width of a column with `texts` under `title`.
int width_of(const std::set<std::string>& texts, const std::string& title) {
  std::size_t width = title.size();
  for (const std::string& text : texts) width = std::max(width, text.size());
  return static_cast<int>(width);
}

/// Chooses the columns of the default table for some cases.
class Fitting {
 public:
  Fitting(const std::vector<Case>& cases, int launches) : cases_(cases), launches_(launches) {}

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
    const Column name = fitted(column("name").titled(title_of_names(cases_.front())),
                               [](const Case& c) { return "~" + c.workload->title(); });
    const Column memory = column("tensor_bytes");
    if (is_layer_ && !is_model_ && used() + name.width + memory.width + 1 <= terminal_columns)
      table.answer.push_back(memory);
    const int width = std::min(name.width, terminal_columns - used());
    table.bench_case.insert(table.bench_case.begin(), name.of_width(-width));
    return table;
  }

 private:
  Columns case_columns() const;
  Columns measured_columns() const;
  Columns simulated_columns() const;
  Columns model_columns() const;
  /// The column `one`, as wide as its title and the texts of the cases.
  Column fitted(const Column& one, const Text& text) const {
    return one.of_width(width_of(distinct(cases_, text), one.title));
  }
  Column verified() const {
    return is_layer_ ? column("verified_elements").in(tokens_by_heads).of_width(11)
                     : column("verified_elements");
  }

  const std::vector<Case>& cases_;
  int launches_;
  bool is_layer_ = cases_.front().workload->is_layer(), is_model_ = cases_.front().workload->is_model();
  bool is_simulated_ = !cases_.front().backend->is_measured;
};

Columns Fitting::case_columns() const {
  Columns columns;
  const auto runs =
      distinct(cases_, [](const Case& c) { return c.backend->name + mark_of(c.workload->native()); });
  const Column run_by = column("executor");
  if (!is_simulated_ && runs.size() > 1) columns.push_back(run_by.of_width(-width_of(runs, run_by.title)));
  columns.push_back(fitted(column("ranks"), [](const Case& c) { return fmt::format("{}", c.ranks); }));
  const Column size = is_layer_ ? column("tokens") : column("state_bytes", Form::brief).titled("size").in("");
  columns.push_back(fitted(size, size_of));
  if (is_model_) columns.push_back(column("line"));
  const auto blocks = distinct(
      cases_, [](const Case& c) { return c.workload->cuts_blocks() ? fmt::format("{}", c.blocks) : ""; });
  if (blocks.size() > 1) columns.push_back(column("blocks").of_width(6));
  return columns;
}

Columns Fitting::measured_columns() const {
  const std::string over = launches_ == 1 ? "in one launch" : fmt::format("over {} launches", launches_);
  Columns columns{
      column("median_seconds", Form::brief).of_width(6),
      column("ci95_seconds", Form::brief).in(over).of_width(std::max(15, static_cast<int>(over.size()))),
      against_the_lowest()};
  if (!is_layer_) columns.push_back(bound_share());
  if (distinct(cases_, [](const Case& c) { return c.workload->variant_name(); }).size() > 2)
    columns.push_back(column("hidden"));
  columns.push_back(verified());
  return columns;
}

Columns Fitting::simulated_columns() const {
  Columns columns{column("median_seconds", Form::brief).titled("time").of_width(6),
                  against_the_lowest().of_width(9)};
  if (!is_layer_) columns.push_back(column("bound_seconds", Form::brief).of_width(6));
  if (!is_layer_) columns.push_back(bound_share());
  columns.push_back(verified());
  return columns;
}

Columns Fitting::model_columns() const {
  return {step_time(),
          token_rate(),
          flops_utilisation(),
          time_over_dp(),
          column("exposed_seconds"),
          column("tensor_bytes"),
          verified()};
}

/// `text` in its column. Text that is aligned to the left and too long has a line of its own.
std::string aligned(const std::string& text, int width) {
  if (width >= 0) return fmt::format("{:>{}} ", text, width);
  const bool is_long = static_cast<int>(text.size()) > -width;
  return is_long ? text + "\n" + std::string(1 - width, ' ') : fmt::format("{:<{}} ", text, -width);
}

/// A line of all cells, one after the other, without trailing spaces.
std::string line(const std::vector<const Columns*>& parts,
                 const std::function<std::string(const Column&)>& cell) {
  std::string text;
  for (const auto* part : parts)
    for (const Column& column : *part) text += aligned(cell(column), column.width);
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

/// The kinds of workloads whose tables have a column.
enum Kinds : unsigned { of_collectives = 1, of_layers = 2, of_models = 4, of_all = 7 };

/// A column of the wide table: that of a key, or one that `made` makes from it and others.
struct Placed {
  unsigned kinds;
  schema::Key key;
  Column (*made)() = nullptr;

  Column column() const { return made == nullptr ? baton::column(key) : made(); }
};

/// The columns of the wide table that say what a case is, behind those that every table has.
const Placed wide_cases[] = {{of_layers | of_models, "pass"},
                             {of_layers | of_models, "mode"},
                             {of_layers, "padding"},
                             {of_layers | of_models, "balance"},
                             {of_collectives, "direction"},
                             {of_all, "cadence"},
                             {of_all, "state_bytes"},
                             {of_all, "blocks"},
                             {of_models, "line"}};

const Placed wide_answers[] = {{of_all, "mean_seconds"},
                               {of_all, "median_seconds"},
                               {of_all, "ci95_seconds"},
                               {of_all, "min_seconds"},
                               {of_all, "p95_seconds"},
                               {of_all, "max_seconds"},
                               {of_all, "first_seconds"},
                               {of_collectives, "algbw_bytes_per_second"},
                               {of_collectives, "busbw_bytes_per_second"},
                               {of_all, "sent_bytes"},
                               {of_all, "hops"},
                               {of_layers | of_models, "tensor_bytes"},
                               {of_layers | of_models, "hidden"},
                               {of_collectives, "bound_seconds"},
                               {of_collectives, "bound_seconds", bound_share},
                               {of_all, "predicted_seconds"},
                               {of_all, "ratio"},
                               {of_all, "ratio_to"},
                               {of_all, "verified_elements"},
                               {of_all, "relative_error"},
                               {of_all, "wrong"},
                               {of_models, "median_seconds", step_time},
                               {of_models, "tokens", token_rate},
                               {of_models, "peak_flops", flops_utilisation},
                               {of_models, "ratio", time_over_dp},
                               {of_models, "exposed_seconds"},
                               {of_all, "p50_seconds"},
                               {of_all, "p99_seconds"},
                               {of_all, "rounds_as_last"}};

Columns columns_of(unsigned kind, std::span<const Placed> places) {
  Columns all;
  for (const Placed& one : places)
    if ((one.kinds & kind) != 0) all.push_back(one.column());
  return all;
}

/// The column of a key that is among `all`.
Column& of_key(Columns& all, schema::Key key) {
  return *std::ranges::find(all, key.field().title, [](const Column& one) { return one.title; });
}

/// The columns of results that have a width in the schema and no place above: a new key is in the
/// table without a change here.
Columns further_columns() {
  Columns all;
  for (std::size_t place = 0; place < schema::fields.size(); ++place) {
    const schema::Key key = schema::Key::at(place);
    const auto is_it = [key](const Placed& one) { return one.key == key; };
    const bool is_column = key.field().role == schema::Role::result && key.field().width != 0;
    if (is_column && std::ranges::none_of(wide_answers, is_it) && std::ranges::none_of(wide_cases, is_it))
      all.push_back(column(key));
  }
  return all;
}

}  // namespace

Table wide_table(const Case& one, int longest_name, int launches) {
  const unsigned kind = 1U << static_cast<unsigned>(one.workload->kind());
  Table table;
  table.bench_case = {column("name").titled(title_of_names(one)).of_width(-std::max(22, longest_name + 1)),
                      column("executor").of_width(width_for_run_by()), column("ranks")};
  add(table.bench_case, columns_of(kind, wide_cases));
  table.answer = columns_of(kind, wide_answers);
  if (launches == 1) {
    Column& interval = of_key(table.answer, "ci95_seconds");
    interval = interval.titled("within one launch");
  }
  if (one.workload->is_layer()) {
    Column& verified = of_key(table.answer, "verified_elements");
    verified = verified.in(tokens_by_heads).of_width(11);
  }
  add(table.answer, further_columns());
  return table;
}

Table fitted_table(const std::vector<Case>& cases, int launches) { return Fitting(cases, launches).table(); }

std::string Table::head() const {
  return line({&bench_case, &answer}, [](const Column& column) { return column.title; }) + "\n" +
         line({&bench_case, &answer}, [](const Column& column) { return column.unit; }) + "\n";
}

std::string Table::row(const Row& row) const {
  const auto cell = [&](const Column& column) { return column.cell(row); };
  const Result& result = row.result;
  std::string end;
  if (result.has("failed") || result.has("skipped"))
    end = (result.has("failed") ? "failed: " : "skipped: ") + result.reason();
  else if (result.whole("wrong") > 0)
    end = fmt::format("wrong: {}, first {}", quantity(result.whole("wrong"), "wrong element"),
                      result.text("first_wrong"));
  if (end.empty()) return line({&bench_case, &answer}, cell) + "\n";
  const std::string text = line({&bench_case}, cell) + "  " + end;
  return fits_terminal ? wrapped(text, "    ") : text + "\n";
}

}  // namespace baton
