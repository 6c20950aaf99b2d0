// SPDX-License-Identifier: Apache-2.0
// The registry of things that add themselves before `main`: collectives, methods, executors,
// natives, device bodies.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collectives/schedule/errors.hpp"

namespace baton {

/// The entries of one kind, by name. An entry never moves, so pointers to it stay valid.
template <class Entry>
class Registry {
 public:
  /// `kind` names what is registered, as in "there is no collective 'all_scam'".
  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  /// Throws UsageError where `name` is taken.
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
