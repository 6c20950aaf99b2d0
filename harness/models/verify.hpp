// SPDX-License-Identifier: Apache-2.0
// Comparisons of a model's outputs with the model in double precision: hidden states, losses, and
// the gradient of each weight.
#pragma once

#include <span>

#include "collectives/executors/executor.hpp"
#include "harness/cases/verify.hpp"
#include "models/reference/oracle.hpp"

namespace baton {

/// The largest ||got - expected|| / ||expected|| of an output of a model with these results:
/// rounding in f32, and what the norms of small heads make of it. Five times the largest of both
/// found.
double model_tolerance(const ModelOracle& oracle);

/// Writes the problem's inputs into, and poison over the outputs of, this process's ranks.
void write_model(Executor& executor, std::span<const Schedule> schedules, const ModelProblem& problem);

/// Compares the outputs of this process's ranks; `wrong` counts tensors outside the tolerance, or
/// with elements that were not written or are not finite. A layer's gradients are compared weight
/// by weight, those of a shard together.
Comparison compare_model(const Executor& executor, std::span<const Schedule> schedules,
                         const ModelOracle& oracle);

}  // namespace baton
