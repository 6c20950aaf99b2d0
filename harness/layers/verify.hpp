// SPDX-License-Identifier: Apache-2.0
// Comparisons of a layer's outputs: of some heads with the oracle, and of all heads with those of
// another method.
//
//   sampled heads, full length:  relative error of each output tensor against the recurrence in
//                                double
//   all elements:                written, and finite
//   all heads, full length:      sketches (sketches.hpp)
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "harness/cases/verify.hpp"
#include "harness/layers/sketches.hpp"
#include "harness/process/world.hpp"
#include "sp_methods/layer_oracle.hpp"

namespace baton {

/// The largest ||got - expected|| / ||expected|| of an output tensor of `dtype` on `ranks` ranks:
/// the error of the arithmetic, and that of messages which are each rounded by at most `roundoff`.
/// `width` is that of a row of the tensor.
double layer_tolerance(Dtype dtype, double roundoff, int ranks, Rule rule = Rule::decay,
                       std::int64_t width = 64);

/// The work of an oracle for all heads, shared by the processes of `team` and their cores.
OracleWork shared_work(const Team& team);

/// The oracle's work shared by the processes of `team` and their cores, for as many heads as about
/// a second allows, at least one, drawn from the problem's seed. Equal on all processes.
OracleWork oracle_work(const Team& team, const LayerProblem& problem);

/// Writes the oracle's inputs of this process's ranks, and poisons their outputs.
void write_layer(Executor& executor, std::span<const Schedule> schedules, const SpMethod& method,
                 const LayerOracle& oracle);

/// Compares the outputs of this process's ranks with the oracle, and adds them to `sketch` unless
/// it is null. `wrong` counts tensors outside the tolerance, or with elements that were not written
/// or are not finite.
Comparison compare_layer(const Executor& executor, std::span<const Schedule> schedules,
                         const SpMethod& method, const LayerOracle& oracle, LayerSketch* sketch = nullptr);

}  // namespace baton
