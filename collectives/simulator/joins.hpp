// SPDX-License-Identifier: Apache-2.0
// The steps of one rank with joins among them. A join stands between many steps and those that wait
// for all of them.
#pragma once

#include <vector>

#include "collectives/schedule/schedule.hpp"
#include "collectives/schedule/step_graph.hpp"
#include "collectives/simulator/topology/topology.hpp"

namespace baton {

struct JoinedSteps {
  StepGraph graph;  // of the steps, then the joins
  /// For each join: true if kernels wait for it, false if other steps do.
  std::vector<bool> kernels_wait;
  /// For each join its seconds; empty if none takes time.
  std::vector<double> seconds;
};

/// Makes the graph of steps, with joins for steps that wait for at least 8 others. Such a step
/// waits for the newest join of its kind if this has the same others, else for a new join.
///
/// All steps behind a fence wait for the same steps. A gather over P ranks has P of them on either
/// side, so P ranks would have P^3 edges without joins, and have P^2 with them. Each kind has its
/// own joins, since a streaming step begins when the others have begun, a kernel when they end.
JoinedSteps join(const std::vector<Step>& steps);

/// Makes the graph of steps whose messages run in groups. Two joins enclose each group. The first
/// waits for the group before and for all that the messages of its group wait for, and takes the
/// time of the launch. The second waits for all that the group receives, but not for what it sends:
/// NCCL buffers that. A step waits for others both directly and through these joins.
JoinedSteps join_groups(const Schedule& schedule, const Topology& topology);

}  // namespace baton
