// SPDX-License-Identifier: Apache-2.0
// What the simulator says of a case.
#pragma once

#include <string>

#include "collectives/simulator/simulate.hpp"
#include "harness/report/record.hpp"

namespace baton {

/// The schedules of `question`, in so many blocks, made one by one. Keeps a reference to `question`.
ScheduleSource schedules_of(const Case& question, int blocks);

/// The number of blocks that `question` runs with on `topology`: about the fastest as the simulator sees it, local work
/// and all. Where that would take too long to find, the alpha-beta model's, halved until it can be simulated.
int best_blocks_on(const Case& question, const Topology& topology);

/// Fills in the predicted time of the record's question in its blocks, and whether the prediction reaches beyond what
/// `topology` was calibrated with. Leaves it empty where the simulator cannot tell.
void predict(Record& record, const Topology& topology);

/// In words why the simulation of `source` reaches beyond what `topology` was calibrated with: in kernels, in ranks, in the
/// sizes of messages, in where they go. Empty where it does not, or where the topology was not measured at all.
std::string extrapolates(const ScheduleSource& source, const Simulation& simulation,
                         const Topology& topology);

}  // namespace baton
