// SPDX-License-Identifier: Apache-2.0
// Names that users write, looked up among the known ones; and Google Benchmark's arguments among
// those of a bench.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <regex>

#include "collectives/schedule/errors.hpp"
#include "harness/options/options.hpp"
#include "harness/process/system.hpp"

namespace baton {
namespace {

/// Levenshtein's distance, row by row.
std::size_t edits(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t change = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({change, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

bool is_of_benchmark(const std::string& argument) { return argument.rfind("--benchmark_", 0) == 0; }

void require_expression(const std::string& name, const std::string& value) try {
  std::regex(value, std::regex::extended);
} catch (const std::regex_error& error) {
  throw UsageError(name + ": " + quoted(value) + " is no regular expression: " + error.what());
}

/// Refuses a value that would make Google Benchmark end the process, or run none of the cases,
/// without a word.
void refuse_odd_value(const std::string& name, const std::string& value) {
  constexpr std::size_t longest = 1000;  // its regular expressions recurse
  if (value.size() > longest) throw UsageError(name + ": " + quoted(value) + " is too long");
  if (name == "--benchmark_filter") require_expression(name, value);
  if (name == "--benchmark_out_format" && value != "json" && value != "csv" && value != "console")
    throw UsageError(name + ": " + quoted(value) + " is not one of json, csv, console");
}

/// Allows only those flags that do not change the rounds. Each process decides about repetitions,
/// minimal times and shuffling for itself, so that the ranks would run different cases at once and
/// hang.
void refuse_unless_harmless(const std::string& argument) {
  if (!is_of_benchmark(argument)) return;
  const std::size_t end = std::min(argument.find('='), argument.size());
  const std::string name = argument.substr(0, end);
  for (const char* harmless :
       {"filter", "list_tests", "out", "out_format", "context", "counters_tabular", "color"})
    if (name == std::string("--benchmark_") + harmless)
      return refuse_odd_value(name, argument.substr(std::min(end + 1, argument.size())));
  throw UsageError(name +
                   " is not for several ranks; of Google Benchmark's flags there are --benchmark_filter, "
                   "_list_tests, _out, _out_format and _context; -n sets the rounds, -N repeats the sweep");
}

/// The flag that takes names of this kind.
std::string flag_of(const std::string& what) {
  return "--" + what + (what == "collective" || what == "method" ? "s" : "");
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  const auto closer = [&](const auto& a, const auto& b) { return edits(word, a) < edits(word, b); };
  const auto best = std::min_element(known.begin(), known.end(), closer);
  return best != known.end() && edits(word, *best) <= std::max<std::size_t>(2, word.size() / 3) ? *best : "";
}

std::vector<std::string> resolve_names(const std::string& what, const std::vector<std::string>& words,
                                       const std::vector<std::string>& known) {
  if (words == std::vector<std::string>{"all"}) return known;
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (std::find(words.begin(), word, *word) != word)
      throw UsageError(fmt::format("{}: {} {} is named twice", flag_of(what), what, quoted(*word)));
    if (std::find(known.begin(), known.end(), *word) != known.end()) continue;
    const std::string near = nearest(*word, known);
    const std::string all = fmt::format("there are: {}", fmt::join(known, ", "));
    throw UsageError(fmt::format("{}: unknown {} {}{}; {}", flag_of(what), what, quoted(*word),
                                 near.empty() ? "" : fmt::format(", did you mean '{}'?", near),
                                 all.size() > 120 ? "--list shows them" : all));
  }
  return words;
}

std::vector<std::string> take_benchmark_arguments(std::vector<std::string>& arguments,
                                                  const std::string& program) {
  const auto theirs = std::stable_partition(arguments.begin(), arguments.end(), std::not_fn(is_of_benchmark));
  std::vector<std::string> taken{program};
  taken.insert(taken.end(), theirs, arguments.end());
  arguments.erase(theirs, arguments.end());
  for (const std::string& argument : taken)
    if (argument.find('=') == argument.size() - 1) throw UsageError(quoted(argument) + " has no value");
  for (const std::string& argument : taken) refuse_unless_harmless(argument);
  return taken;
}

void require_export(const Export& asked, const std::vector<Case>& cases) {
  if (asked.format.empty()) return;
  const ExportFormat* const format = export_formats().find(asked.format);
  if (format == nullptr) {
    std::string known;
    for (const ExportFormat* format : export_formats().all())
      known += (known.empty() ? "" : ", ") + format->name;
    throw UsageError(fmt::format("--export {}: this build knows {}", asked.format,
                                 known.empty()
                                     ? "no format, for libprotobuf was not there (Debian's libprotobuf-dev)"
                                     : "only " + known));
  }
  if (cases.size() != 1)
    throw UsageError(fmt::format("--export takes a single case, but these flags ask for {}", cases.size()));
  const Case& only = cases.front();
  if (const Refusal refusal = only.workload->unsupported(only.ranks))
    throw UsageError("--export: " + refusal.reason());
  format->text(only.workload->build_rank(0, only.split(1)), only.name());  // which may refuse
}

}  // namespace baton
