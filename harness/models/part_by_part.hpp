// SPDX-License-Identifier: Apache-2.0
// Models that are too large for their oracle, compared part by part:
//
//   products, norms, gates, the MLP, the ends:  sampled rows against their own operands
//   linear attention and its exchange:          the recurrence over their own operands, from the
//                                               states that the ranks before really make
//   softmax attention and its exchange:         sampled queries over the keys of all ranks
//   sharded weights and gradients:              runs of them against what was drawn, and summed up
#pragma once

#include <span>

#include "harness/cases/verify.hpp"
#include "sp_methods/models/reference/oracle.hpp"

namespace baton {

/// Compares a model that is too large for the oracle part by part: sampled steps, attention and
/// sharded weights. The seed chooses rows and heads. Collective over the team.
Comparison compare_sampled(const Executor& executor, std::span<const Schedule> schedules,
                           const ModelProblem& problem, const Team& team);

}  // namespace baton
