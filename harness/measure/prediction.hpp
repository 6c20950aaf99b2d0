// SPDX-License-Identifier: Apache-2.0
// What the simulator predicts with a topology, and the choice of blocks with it.
#pragma once

#include <optional>
#include <string>

#include "collectives/simulator/simulate.hpp"
#include "collectives/simulator/topology/topology.hpp"

namespace baton {

class Placement;
struct AlphaBeta;
struct Case;

/// The schedules of `bench_case` in `blocks` blocks, built one by one. Keeps a reference to
/// `bench_case`.
ScheduleSource schedules_of(const Case& bench_case, int blocks);

/// The number of blocks with which `bench_case` is about fastest on `topology`, local work
/// included, as the simulator sees it. If the search would take too long: the number of the
/// alpha-beta model, halved until it can be simulated.
int best_blocks_on(const Case& bench_case, const Topology& topology);

/// The least time that the links allow `bench_case` in `blocks` blocks where its ranks fill several
/// hosts, each message counted with the link that it takes. Empty on one host, for other
/// placements, and for natives.
std::optional<double> bound_over_hosts(const Case& bench_case, int blocks, const AlphaBeta& model,
                                       const Placement& placement);

/// A simulated time to be compared with a measured one.
struct Prediction {
  double seconds = 0;
  /// The name of the topology.
  std::string topology;
  /// The reason why the prediction goes beyond what the topology was calibrated with; empty if it
  /// does not.
  std::string extrapolated;
};

/// The time of `bench_case` in `blocks` blocks on `topology`; empty if it cannot be simulated.
std::optional<Prediction> predict(const Case& bench_case, int blocks, const Topology& topology);

/// The reason why the simulation of `source` goes beyond what `topology` was calibrated with: its
/// kernels, its ranks, the sizes of its messages or their paths. Empty if it does not, or if the
/// topology was not calibrated.
std::string extrapolates(const ScheduleSource& source, const Simulation& simulation,
                         const Topology& topology);

}  // namespace baton
