// SPDX-License-Identifier: Apache-2.0
// How models are verified against their oracle.
#pragma once

#include <span>

#include "collectives/executors/executor.hpp"
#include "harness/cases/verify.hpp"
#include "sp_methods/layer_oracle.hpp"
#include "sp_methods/models/reference/oracle.hpp"

namespace baton {

/// The most flop of an oracle, some seconds of one core. Larger models are compared part by part.
inline constexpr double most_oracle_flop = 2e10;

/// The largest accepted ||got - expected|| / ||expected|| of an output of a model: the error of
/// rounding in the tensors' dtype, and in f32 its enlargement by the norms of small outputs.
double model_tolerance(const ModelOracle& oracle);

/// Writes the problem's inputs of this process's ranks, and poisons their outputs. The threads of
/// `work` draw the inputs.
void write_model(Executor& executor, std::span<const Schedule> schedules, const ModelProblem& problem,
                 const OracleWork& work = {});

/// Compares the outputs of this process's ranks with the oracle. `wrong` counts tensors outside the
/// tolerance, or with elements that were not written or are not finite. Gradients of a layer are
/// compared weight by weight, those of a shard together.
Comparison compare_model(const Executor& executor, std::span<const Schedule> schedules,
                         const ModelOracle& oracle);

}  // namespace baton
