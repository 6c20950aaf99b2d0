// SPDX-License-Identifier: Apache-2.0
// The settings of published tables and of public suites: JSON, in which each value has a source.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace baton {

/// What a published table or a public suite asks of a bench.
struct Settings {
  std::string name;
  std::string title;
  /// Flags without their dashes, and their values as a user writes them.
  std::vector<std::pair<std::string, std::string>> flags;
};

/// All settings for the bench called `bench`, by name. Throws UsageError, in one line, if a file
/// cannot be read, lacks a key, or has a flag without a source.
std::vector<Settings> settings_of(const std::string& bench);

}  // namespace baton
