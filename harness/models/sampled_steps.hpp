// SPDX-License-Identifier: Apache-2.0
// Sampled rows of the steps of a model against their own operands.
#pragma once

namespace baton {

struct Comparison;
struct SampledRun;

/// Compares sampled rows of products, norms, gates, the MLP and a model's ends with results that
/// are computed again from their operands.
Comparison compare_steps(const SampledRun& run);

}  // namespace baton
