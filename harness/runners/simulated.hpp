// SPDX-License-Identifier: Apache-2.0
// Cases in the virtual time of a simulated machine.
#pragma once

#include <memory>

#include "collectives/executors/team.hpp"

namespace baton {

class CaseRunner;
struct Options;
struct Topology;

/// A runner that computes times on `topology` in one process. `options` and `topology` must outlive
/// it.
std::unique_ptr<CaseRunner> simulated_runner(const Options& options, const Topology& topology, int ranks,
                                             Team team);

}  // namespace baton
