// SPDX-License-Identifier: Apache-2.0
// The calls of a library as JSON, in the section "natives" of a topology.
#pragma once

#include <nlohmann/json.hpp>

#include "collectives/simulator/topology/json.hpp"
#include "collectives/simulator/topology/library_call.hpp"

namespace baton {

/// Reads one call. Throws UsageError.
LibraryCall read_library_call(const JsonSection& call);

nlohmann::ordered_json written(const LibraryCall& call);

}  // namespace baton
