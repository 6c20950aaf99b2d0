// SPDX-License-Identifier: Apache-2.0
// Records as comma-separated values (RFC 4180), for spreadsheets. The values are those of the JSON
// records, so nothing is computed twice; lists of rounds stay in the records.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "harness/process/output.hpp"

namespace baton {

/// A file of comma-separated values, one line a case below one line of titles.
class CsvFile {
 public:
  /// Opens `path` to be appended to; an empty path stands for no file. Throws UsageError if the
  /// file cannot be appended to, if it begins with other titles, or if its last line is not whole.
  explicit CsvFile(const std::string& path);

  /// Appends the values of one record, and flushes them. Throws SystemError if that fails.
  void append(const nlohmann::ordered_json& record);

 private:
  Journal file_;
};

}  // namespace baton
