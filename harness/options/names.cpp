// SPDX-License-Identifier: Apache-2.0
#include "harness/options/names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "collectives/schedule/errors.hpp"
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

/// The flag that takes names of this kind.
std::string flag_of(const std::string& what) {
  return "--" + what + (what == "collective" || what == "method" ? "s" : "");
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  const auto closer = [&](const auto& a, const auto& b) { return edits(word, a) < edits(word, b); };
  const auto best = std::min_element(known.begin(), known.end(), closer);
  const std::size_t most = word.size() < 4 ? 1 : std::max<std::size_t>(2, word.size() / 3);
  return best != known.end() && edits(word, *best) <= most ? *best : "";
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

std::vector<std::string> resolve_workloads(const std::string& what, const std::vector<std::string>& words,
                                           const std::vector<std::string>& known,
                                           const std::string& baseline) {
  if (!baseline.empty()) resolve_names("baseline", {baseline}, known);
  const auto names = resolve_names(what, words, known);
  if (!baseline.empty() && std::find(names.begin(), names.end(), baseline) == names.end())
    throw UsageError("--baseline " + quoted(baseline) + " is not among what runs");
  return names;
}

}  // namespace baton
