// SPDX-License-Identifier: Apache-2.0
// A topology of the machine at hand, as it is measured.
#pragma once

#include <string>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "collectives/executors/team.hpp"
#include "collectives/simulator/topology/topology.hpp"

namespace baton {

class Placement;

/// Measures messages, combines and copies of `executor` from 8 B to 16 MiB, on one pair and on all
/// ranks at once, each in a small schedule of its own. Hosts become nodes, and messages within and
/// between them are measured apart; ranks that do not fill hosts one after the other are one node.
/// `stands_on` names what is measured: machine, executor, commit. Collective over the team; all
/// processes get the same topology.
Topology calibrate(Executor& executor, const Team& team, const Placement& placement,
                   const std::string& stands_on);

/// `links` without the rates of its kernels, which one rank of `machine` will measure. Links,
/// copies and combines stay; the name and the calibration say where each comes from. `stands_on`
/// names what is measured: machine, executor, commit.
Topology awaiting_kernels(const Topology& links, const std::string& machine, const std::string& stands_on);

/// Adds the rates of the kernels in `schedules`, from traced rounds: operations a second, or bytes
/// a second for a kernel without operations; the median over steps of the slowest rank. With one
/// rank the residual becomes the distance of the round from the simulated one, if it is larger.
/// `source` says where the rates come from. Changes nothing if the executor cannot tell when its
/// steps ran. Collective over the team.
void calibrate_kernels(Topology& topology, Executor& executor, const Team& team,
                       const std::vector<Schedule>& schedules, const std::string& source = {});

}  // namespace baton
