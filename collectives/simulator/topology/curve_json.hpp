// SPDX-License-Identifier: Apache-2.0
// Curves as JSON: arrays of points {"bytes": ..., "seconds": ...}.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "collectives/simulator/topology/curve.hpp"
#include "collectives/simulator/topology/json.hpp"

namespace baton {

/// The curve under `key`; empty if there is none. Throws UsageError unless its points are in order.
Curve read_curve(const JsonSection& parent, const std::string& key);

/// Writes a curve under `key`, unless it is empty.
void write_curve(nlohmann::ordered_json& parent, const std::string& key, const Curve& curve);

}  // namespace baton
