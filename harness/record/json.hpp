// SPDX-License-Identifier: Apache-2.0
// Records as JSON, which is how they leave a process: for a file of records, or for the process
// that prints their rows.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "harness/process/system.hpp"
#include "harness/record/record.hpp"

namespace baton {

/// The origin of all records of one run.
struct Provenance {
  Machine machine;
  std::string commit;
  /// The name of the run, which distinguishes its records from those of other runs.
  std::string run;
  /// The session of the run; may be empty.
  std::string session;
  /// The number of the launch, from 1; `launches` is how many the run has.
  int launch = 1;
  int launches = 1;
  std::uint64_t seed = 1;
  std::string baseline;
};

/// The record as JSON under the keys of docs/metrics.md.
nlohmann::ordered_json json_of(const Record& record, const Provenance& provenance);

/// The part of a record that a row shows, as JSON: without the ranks' times, their standing, the
/// machine and the origin.
nlohmann::ordered_json row_json(const Record& record);

/// The JSON as one line without its newline. Bytes that are no UTF-8 are replaced: names and
/// variables of the environment may hold any.
std::string line_of(const nlohmann::ordered_json& json);

}  // namespace baton
