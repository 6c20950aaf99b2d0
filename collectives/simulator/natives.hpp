// SPDX-License-Identifier: Apache-2.0
// Natives that the simulator knows: calls of a library whose times a topology has.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "collectives/schedule/schedule.hpp"
#include "collectives/simulator/topology/topology.hpp"

namespace baton {

/// The names of the natives that can be simulated on `topology`.
std::set<std::string> simulated_natives(const Topology& topology);

/// Seconds of the native `step` of a schedule of `ranks` ranks. A call's time spans from launch to
/// launch, as a round's does, so it is what the call takes beside an empty round. Empty
/// if the topology does not have the native.
std::optional<double> native_seconds(const Topology& topology, const std::string& native, int ranks,
                                     const Step& step);

}  // namespace baton
