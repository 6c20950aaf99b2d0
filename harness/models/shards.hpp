// SPDX-License-Identifier: Apache-2.0
// Sharded weights and gradients of a model.
#pragma once

namespace baton {

struct Comparison;
struct SampledRun;

/// Compares runs of sharded weights with the drawn values, and runs of their gradients with sums
/// over all ranks. Collective over the team.
Comparison compare_shards(const SampledRun& run);

}  // namespace baton
