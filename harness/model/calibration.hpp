// SPDX-License-Identifier: Apache-2.0
// The machine at hand as a topology for the simulator.
#pragma once

#include <string>

#include "collectives/executors/executor.hpp"
#include "collectives/simulator/topology/topology.hpp"
#include "harness/process/launch.hpp"

namespace baton {

/// Measures messages, combines and copies of `executor` from 8 B to 16 MiB, on a pair and under the load of all ranks,
/// with each step in its own small schedule. `stands_on` says in words what was measured: machine, executor, commit.
/// Collective over the team; all get the same.
Topology calibrate(Executor& executor, const Team& team, int ranks, const std::string& stands_on);

/// Adds the rates of the kernels in `schedules`, from traced rounds of them: operations over seconds, or bytes where
/// there are none, the median over steps of the slowest rank. Leaves the topology alone where the executor cannot tell when its steps ran. Collective over the team.
void calibrate_kernels(Topology& topology, Executor& executor, const Team& team,
                       const std::vector<Schedule>& schedules);

}  // namespace baton
