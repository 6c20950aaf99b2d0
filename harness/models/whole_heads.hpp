// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "harness/models/sampled.hpp"

namespace baton {

/// True if a layer's linear attention is compared by whole heads: a delta rule maps a state by
/// matrices, a convolution reads tokens of other ranks, and heads of values may share q and k.
bool has_whole_heads(const Stack& stack);

/// Compares one drawn head of q, and the heads of values that share it, of some linear layers with
/// the recurrence over the tokens of all ranks. Collective over the run's team.
Comparison compare_whole_heads(const SampledRun& run);

}  // namespace baton
