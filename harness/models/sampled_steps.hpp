// SPDX-License-Identifier: Apache-2.0
// Sampled rows of the steps of a model against their own operands.
#pragma once

namespace baton {

struct Comparison;
struct SampledRun;

/// Compares products, norms, gates, the MLP and what is at the ends. Collective over the team.
Comparison compare_steps(const SampledRun& run);

}  // namespace baton
