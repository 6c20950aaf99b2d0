// SPDX-License-Identifier: Apache-2.0
// Schedules as files that other programs read: what is asked for, and the formats that are built
// in.
#pragma once

#include <functional>
#include <string>

#include "collectives/schedule/registry.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

struct Case;

/// An export that the user asks for: the name of a format, and the start of its files' names. Both
/// are empty for none.
struct Export {
  std::string format;
  std::string path;

  bool operator==(const Export&) const = default;
};

/// A registered format of schedules.
struct ExportFormat {
  std::string name;
  /// The content of a file in words, for help and messages.
  std::string summary;
  /// The end of a file's name.
  std::string suffix;
  /// Returns the content of the file of one rank of the case called `case_name`. Throws UsageError
  /// for a step that the format cannot tell.
  std::function<std::string(const Schedule& schedule, const std::string& case_name)> text;
};

Registry<ExportFormat>& export_formats();

/// Adds a format before `main`.
struct RegisteredExportFormat {
  explicit RegisteredExportFormat(const ExportFormat& format) {
    add_or_exit([&format] { export_formats().add(format.name, format); });
  }
};

/// The files of --export, one for each of `ranks` ranks: PATH.RANK and the suffix of the format.
/// None if nothing is asked for.
std::vector<std::string> export_files(const Export& asked, int ranks);

/// Writes the schedule of each rank of a case in `blocks` blocks, rank by rank, to the files of the
/// export. Returns the line that says so; an empty one if nothing is asked for.
/// Throws SystemError if a file cannot be written, and what the format throws.
std::string export_case(const Export& asked, const Case& bench_case, int blocks);

}  // namespace baton
