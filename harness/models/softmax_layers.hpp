// SPDX-License-Identifier: Apache-2.0
// Softmax attention of a model and its exchange against sampled queries.
#pragma once

namespace baton {

struct Comparison;
struct SampledRun;

/// Compares sampled queries of softmax attention with a reference over the keys of all ranks.
/// Collective over the team.
Comparison compare_softmax_layers(const SampledRun& run);

}  // namespace baton
