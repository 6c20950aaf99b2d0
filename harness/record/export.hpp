// SPDX-License-Identifier: Apache-2.0
// Schedules as files that other programs read: what is asked for, and the formats that are built
// in.
#pragma once

#include <functional>
#include <string>

#include "collectives/schedule/registry.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// What is asked for: the name of a format, and what the names of its files begin with. Both are
/// empty for nothing.
struct Export {
  std::string format;
  std::string path;

  bool operator==(const Export&) const = default;
};

/// A registered format of schedules.
struct ExportFormat {
  std::string name;
  /// What a file holds, as help and messages call it.
  std::string summary;
  /// The end of a file's name.
  std::string suffix;
  /// The content of the file of one rank of the case called `case_name`. Throws UsageError for a
  /// step that the format cannot tell.
  std::function<std::string(const Schedule& schedule, const std::string& case_name)> text;
};

inline Registry<ExportFormat>& export_formats() {
  static Registry<ExportFormat> all("format of --export");
  return all;
}

/// Adds a format before `main`.
struct RegisteredExportFormat {
  explicit RegisteredExportFormat(const ExportFormat& format) {
    add_or_exit([&format] { export_formats().add(format.name, format); });
  }
};

}  // namespace baton
