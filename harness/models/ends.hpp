// SPDX-License-Identifier: Apache-2.0
// What is at a model's ends, step by step.
#pragma once

#include <cstddef>
#include <cstdint>

namespace baton {

class RankTensors;

/// The relative error of sampled rows of step `at`, if it is at an end of the model: embedding,
/// loss or optimizer; -1 for any other step.
double end_error(const RankTensors& tensors, std::size_t at, std::uint64_t seed);

}  // namespace baton
