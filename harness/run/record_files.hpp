// SPDX-License-Identifier: Apache-2.0
// The files that a run appends its records to.
#pragma once

#include <string>

#include "harness/process/output.hpp"
#include "harness/record/csv.hpp"
#include "harness/record/json.hpp"

namespace baton {

struct Options;

/// The files of --json and --csv, in the process that writes them.
class RecordFiles {
 public:
  /// Writes records of the launch called `launch` of the run called `run`; nothing unless `writes`.
  /// Throws UsageError if a file cannot be written.
  RecordFiles(const Options& options, const std::string& run, int launch, bool writes = true);

  /// Appends a record and flushes it. Throws SystemError if that fails.
  void append(const Record& record);

 private:
  bool writes_;
  Provenance provenance_;
  Journal journal_;
  CsvFile csv_;
};

/// The record of a case that gave no time though nothing refused it.
Record failed_record(const Options& options, int index, Failure failure);

}  // namespace baton
