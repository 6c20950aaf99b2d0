// SPDX-License-Identifier: Apache-2.0
// What a command line may not ask for: everything that can be refused before a process starts is
// refused here, in one line that names the flag.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/simulator/topology/topology.hpp"

namespace baton {

struct Case;
struct Options;

/// The topology of --topology, if it was given. Throws UsageError if it cannot be read, or if the
/// simulator has none or one that is too small for its ranks.
std::optional<Topology> read_machine(const Options& options);

/// Throws UsageError if this machine can run none of the cases. If it can run some, the others
/// become skipped rows.
void refuse_if_nothing_runs(const Options& options);

/// Throws UsageError if no launcher has placed the processes, and they are far more than this host
/// has cores: they would only wait for one another, and each takes memory of its own. The message
/// ends with what else there is to do.
void refuse_too_many_processes(int processes, std::string_view otherwise);

/// The same of the processes that the cases need.
void refuse_too_many_processes(const Options& options);

/// Throws UsageError if a file that a flag names cannot be written or is also that of another flag,
/// or if a trace is asked for and there is not exactly one case.
void require_outputs(const Options& options);

/// Throws UsageError if the format of --export is not built in, if there is not exactly one case,
/// if the case cannot run or be written in the format, or if a file of a rank is no place for an
/// output, is also that of another flag, or has records.
void require_exports(const Options& options);

/// Throws UsageError if a tensor [a, b, c] of f32 is larger than 8 TiB.
void check_size(std::int64_t a, std::int64_t b, std::int64_t c);

}  // namespace baton
