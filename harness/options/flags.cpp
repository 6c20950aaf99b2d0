// SPDX-License-Identifier: Apache-2.0
// The only file that includes CLI11, which takes long to compile.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <numeric>

#include "collectives/schedule/errors.hpp"
#include "harness/options/options.hpp"
#include "harness/process/world.hpp"

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

/// The known word that differs from `word` by the fewest edits; empty if none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  const auto closer = [&](const auto& a, const auto& b) { return edits(word, a) < edits(word, b); };
  const auto best = std::min_element(known.begin(), known.end(), closer);
  return best != known.end() && edits(word, *best) <= std::max<std::size_t>(2, word.size() / 3) ? *best : "";
}

bool is_of_benchmark(const std::string& argument) { return argument.rfind("--benchmark_", 0) == 0; }

/// Allows only those flags that do not change the rounds. Each process decides about repetitions,
/// minimal times and shuffling for itself, so that the ranks would run different cases at once and
/// hang.
void refuse_unless_harmless(const std::string& argument) {
  if (!is_of_benchmark(argument)) return;
  const std::string name = argument.substr(0, argument.find('='));
  for (const char* harmless :
       {"filter", "list_tests", "out", "out_format", "context", "counters_tabular", "color"})
    if (name == std::string("--benchmark_") + harmless) return;
  throw UsageError(name +
                   " is not for several ranks; of Google Benchmark's flags there are --benchmark_filter, "
                   "_list_tests, _out, _out_format and _context; -n sets the rounds, -N repeats the sweep");
}

}  // namespace

Flag& Flag::list() {
  option_->delimiter(',');
  return *this;
}

Flag& Flag::range(std::int64_t least, std::int64_t most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Flag& Flag::bytes(std::uint64_t most) {
  option_->transform(CLI::AsSizeValue(false) & CLI::Range(std::uint64_t{1}, most));
  return *this;
}

Flag& Flag::one_of(const std::vector<std::string>& words) {
  option_->check(CLI::IsMember(words));
  return *this;
}

Flag& Flag::needs(const Flag& other) {
  option_->needs(other.option_);
  return *this;
}

Flag& Flag::excludes(const Flag& other) {
  option_->excludes(other.option_);
  return *this;
}

Flag& Flag::hidden() {
  option_->group("");
  return *this;
}

Flag& Flag::sets(bool& given) {
  option_->each([&given](const std::string&) { given = true; });
  return *this;
}

Flags::Flags(const std::string& program, const std::string& description)
    : app_(std::make_unique<CLI::App>(description, program)) {
  app_->option_defaults()->always_capture_default();
}

Flags::~Flags() = default;

template <class Value>
Flag Flags::add(const std::string& names, Value& value, const std::string& help) {
  return Flag(app_->add_option(names, value, help));
}

template <>
Flag Flags::add(const std::string& names, bool& value, const std::string& help) {
  return Flag(app_->add_flag(names, value, help));
}

template Flag Flags::add(const std::string&, int&, const std::string&);
template Flag Flags::add(const std::string&, std::int64_t&, const std::string&);
template Flag Flags::add(const std::string&, std::uint64_t&, const std::string&);
template Flag Flags::add(const std::string&, std::string&, const std::string&);
template Flag Flags::add(const std::string&, std::vector<int>&, const std::string&);
template Flag Flags::add(const std::string&, std::vector<std::int64_t>&, const std::string&);
template Flag Flags::add(const std::string&, std::vector<std::string>&, const std::string&);

bool Flags::parse(std::vector<std::string> arguments) {
  arguments.erase(arguments.begin());
  std::reverse(arguments.begin(), arguments.end());  // the order in which CLI11 takes them
  try {
    app_->parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    if (launched_rank() == 0) fmt::print("{}", app_->help());
    return false;
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  return true;
}

std::vector<std::string> resolve_names(const std::string& what, const std::vector<std::string>& words,
                                       const std::vector<std::string>& known) {
  if (words == std::vector<std::string>{"all"}) return known;
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (std::find(words.begin(), word, *word) != word)
      throw UsageError(fmt::format("{} '{}' is named twice", what, *word));
    if (std::find(known.begin(), known.end(), *word) != known.end()) continue;
    const std::string near = nearest(*word, known);
    throw UsageError(fmt::format("unknown {} '{}'{}; there are: {}", what, *word,
                                 near.empty() ? "" : fmt::format(", did you mean '{}'?", near),
                                 fmt::join(known, ", ")));
  }
  return words;
}

std::vector<std::string> take_benchmark_arguments(std::vector<std::string>& arguments,
                                                  const std::string& program) {
  const auto theirs = std::stable_partition(arguments.begin(), arguments.end(), std::not_fn(is_of_benchmark));
  std::vector<std::string> taken{program};
  taken.insert(taken.end(), theirs, arguments.end());
  arguments.erase(theirs, arguments.end());
  for (const std::string& argument : taken) refuse_unless_harmless(argument);
  return taken;
}

}  // namespace baton
