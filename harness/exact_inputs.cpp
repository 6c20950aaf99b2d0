// SPDX-License-Identifier: Apache-2.0
// Exact inputs from a hash of seed, rank and position.
#include "harness/exact_inputs.hpp"

#include <algorithm>

namespace baton {
namespace {

/// The finaliser of SplitMix64: any change of the input changes half of the output's bits.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

ExactInputs::ExactInputs(std::uint64_t seed, int ranks)
    : seed_(mix(seed)), ranks_between_halves_(std::max(2, (ranks + 5) / 6)) {}

void ExactInputs::fill_decay(int rank, std::span<float> decay) const {
  for (std::size_t row = 0; row < decay.size(); ++row)
    decay[row] = (mix(seed_ ^ row) + rank) % ranks_between_halves_ == 0 ? 0.5f : 1.0f;
}

void ExactInputs::fill_state(int rank, std::span<float> state) const {
  const std::uint64_t key = mix(seed_ + static_cast<std::uint64_t>(rank) + 1);
  for (std::size_t i = 0; i < state.size(); ++i)
    state[i] = static_cast<float>(static_cast<int>(mix(key ^ i) % 17) - 8);
}

}  // namespace baton
