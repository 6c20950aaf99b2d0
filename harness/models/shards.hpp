// SPDX-License-Identifier: Apache-2.0
// Sharded weights and gradients of a model.
#pragma once

namespace baton {

struct Comparison;
struct SampledRun;

/// Compares runs of them with what was drawn, and with sums. Collective over the team.
Comparison compare_shards(const SampledRun& run);

}  // namespace baton
