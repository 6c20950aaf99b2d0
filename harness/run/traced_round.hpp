// SPDX-License-Identifier: Apache-2.0
// One more round of a case, written down as a trace: --trace FILE.
#pragma once

#include <string>

#include "harness/options/options.hpp"
#include "harness/report/record.hpp"
#include "harness/run/testbed.hpp"

namespace baton {

/// Throws UsageError where a trace is asked for and there is not exactly one case, or the file cannot be written.
void try_trace(const Options& options);

/// Runs one more round of the case that `record` answers, which `testbed` has prepared, and writes its trace to `path`; a
/// line that says so, or why there is none. Does nothing if `path` is empty. Collective over the testbed's team. Throws
/// SystemError if the file cannot be written after all.
std::string trace_round(const std::string& path, const Record& record, Testbed& testbed);

}  // namespace baton
