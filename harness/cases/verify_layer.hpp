// SPDX-License-Identifier: Apache-2.0
// Verification of a layer on this process's ranks against the double-precision oracle.
#pragma once

#include <span>

#include "harness/cases/workload.hpp"
#include "sp_methods/layer_oracle.hpp"

namespace baton {

/// ||got - expected|| / ||expected|| that no output tensor of `dtype` may exceed: what the arithmetic brings, and what
/// messages of states, keys and values do between `ranks` that are rounded by `roundoff` on their way.
double layer_tolerance(Dtype dtype, double roundoff, int ranks);

/// Writes the oracle's inputs into, and NaN over the outputs of, the local ranks of `schedules`.
void write_layer(Executor& executor, std::span<const Schedule> schedules, const SpMethod& method,
                 const LayerOracle& oracle, std::int64_t tokens);

/// Compares the outputs; `wrong` counts tensors outside the tolerance.
Comparison compare_layer(const Executor& executor, std::span<const Schedule> schedules,
                         const SpMethod& method, const LayerOracle& oracle, std::int64_t tokens);

}  // namespace baton
