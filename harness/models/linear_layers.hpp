// SPDX-License-Identifier: Apache-2.0
// Linear attention of a model and its exchange against the recurrence.
#pragma once

namespace baton {

struct Comparison;
struct SampledRun;

/// Compares them over their own operands, from the states that the ranks before really make.
/// Collective over the team.
Comparison compare_linear_layers(const SampledRun& run);

}  // namespace baton
