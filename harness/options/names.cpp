// SPDX-License-Identifier: Apache-2.0
// Edit distances and what to say about them.
#include "harness/options/names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "collectives/schedule/errors.hpp"

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

}  // namespace

std::vector<std::string> chosen(const std::string& what, const std::vector<std::string>& words,
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

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  const auto closer = [&](const auto& a, const auto& b) { return edits(word, a) < edits(word, b); };
  const auto best = std::min_element(known.begin(), known.end(), closer);
  return best != known.end() && edits(word, *best) <= std::max<std::size_t>(2, word.size() / 3) ? *best : "";
}

}  // namespace baton
