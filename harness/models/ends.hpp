// SPDX-License-Identifier: Apache-2.0
// What is at a model's ends, step by step.
#pragma once

#include <cstddef>
#include <cstdint>

namespace baton {

class RankTensors;

/// The error of sampled rows of step `at`, of what is at a model's ends; -1 for any other step.
double end_error(const RankTensors& tensors, std::size_t at, std::uint64_t seed);

}  // namespace baton
