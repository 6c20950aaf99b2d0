// SPDX-License-Identifier: Apache-2.0
// The registry of things that add themselves before `main`: collectives, methods, executors,
// natives, device bodies.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collectives/schedule/errors.hpp"

namespace baton {

/// Runs `add` before `main`, where nothing catches an error: the program ends with the text of a
/// UsageError and exit code 2.
template <class Add>
void add_or_exit(const Add& add) {
  try {
    add();
  } catch (const UsageError& error) {
    std::fprintf(stderr, "baton: %s\n", error.what());
    std::_Exit(2);
  }
}

/// The entries of one kind, by name. An entry never moves, so pointers to it stay valid.
template <class Entry>
class Registry {
 public:
  /// `kind` names what is registered, as in "there is no collective 'all_scam'".
  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  /// Adds an entry. Throws UsageError if `name` is taken.
  void add(const std::string& name, Entry entry) {
    if (!entries_.emplace(name, std::move(entry)).second)
      throw UsageError("the " + kind_ + " '" + name + "' is registered twice");
  }

  /// The entry called `name`, or a null pointer.
  const Entry* find(const std::string& name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second;
  }

  /// The entry called `name`. Throws UsageError if there is none.
  const Entry& at(const std::string& name) const {
    if (const Entry* entry = find(name)) return *entry;
    throw UsageError("there is no " + kind_ + " '" + name + "'");
  }

  /// All entries, by name.
  std::vector<const Entry*> all() const {
    std::vector<const Entry*> entries;
    for (const auto& [name, entry] : entries_) entries.push_back(&entry);
    return entries;
  }

 private:
  std::string kind_;
  std::map<std::string, Entry> entries_;
};

}  // namespace baton
