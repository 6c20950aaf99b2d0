// SPDX-License-Identifier: Apache-2.0
#include "harness/options/names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/texts.hpp"
#include "harness/machine/system.hpp"

namespace baton {
namespace {

/// The flag that takes names of this kind.
std::string flag_of(const std::string& what) {
  return "--" + what + (what == "collective" || what == "method" || what == "line" ? "s" : "");
}

}  // namespace

std::vector<std::string> resolve_names(const std::string& what, const std::vector<std::string>& words,
                                       const std::vector<std::string>& known) {
  if (words == std::vector<std::string>{"all"}) return known;
  if (std::find(words.begin(), words.end(), "all") != words.end())
    throw UsageError(flag_of(what) + ": 'all' stands alone, without other names");
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
