// SPDX-License-Identifier: Apache-2.0
// Names that users write, looked up among the known ones.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace baton {

/// The names that `words` stand for: each must be in `known`, none of them twice, and "all" stands
/// for all known ones. Throws UsageError that suggests the nearest known word; `what` says what the
/// words name.
std::vector<std::string> resolve_names(const std::string& what, const std::vector<std::string>& words,
                                       const std::vector<std::string>& known);

/// Words and the values that they stand for.
template <class Value>
using Choices = std::vector<std::pair<std::string, Value>>;

template <class Value>
std::vector<std::string> words_of(const Choices<Value>& choices) {
  std::vector<std::string> words;
  for (const auto& [word, value] : choices) words.push_back(word);
  return words;
}

/// The value of `word`, which must be one of the choices.
template <class Value>
Value value_of(const Choices<Value>& choices, const std::string& word) {
  for (const auto& [known, value] : choices)
    if (known == word) return value;
  return choices.front().second;
}

/// The values of `words`, in their order. Throws UsageError like resolve_names.
template <class Value>
std::vector<Value> resolve_values(const std::string& what, const std::vector<std::string>& words,
                                  const Choices<Value>& choices) {
  std::vector<Value> values;
  for (const std::string& word : resolve_names(what, words, words_of(choices)))
    values.push_back(value_of(choices, word));
  return values;
}

/// The names of a registry's entries.
template <class Entries>
std::vector<std::string> names_of(const Entries& entries) {
  std::vector<std::string> names;
  for (const auto* entry : entries) names.push_back(entry->name);
  return names;
}

/// The names of the workloads that run and of the baseline, looked up in `known`; `what` says what
/// names are called in errors. Throws UsageError if the baseline does not run.
std::vector<std::string> resolve_workloads(const std::string& what, const std::vector<std::string>& words,
                                           const std::vector<std::string>& known,
                                           const std::string& baseline);

}  // namespace baton
