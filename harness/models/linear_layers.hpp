// SPDX-License-Identifier: Apache-2.0
// Linear attention of a model and its exchange against the recurrence.
#pragma once

namespace baton {

struct Comparison;
struct SampledRun;

/// Compares the linear attention of a model, over its own operands and from the states that the
/// ranks before make, with the recurrence. Collective over the team.
Comparison compare_linear_layers(const SampledRun& run);

}  // namespace baton
