// SPDX-License-Identifier: Apache-2.0
// Cases that run on an executor.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "collectives/executors/team.hpp"

namespace baton {

class CaseRunner;
struct Options;
struct Topology;

/// Runs schedules on an executor. `options` must outlive it; `topology` is that of predictions, if
/// there is one.
std::unique_ptr<CaseRunner> measured_runner(const Options& options, const std::optional<Topology>& topology,
                                            const std::string& executor, int ranks, Team team);

}  // namespace baton
