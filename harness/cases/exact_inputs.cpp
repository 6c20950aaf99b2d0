// SPDX-License-Identifier: Apache-2.0
// Exact inputs from a hash of seed, rank and position.
#include "harness/cases/exact_inputs.hpp"

#include <algorithm>

namespace baton {

ExactInputs::ExactInputs(std::uint64_t seed, int ranks)
    : seed_(scrambled(seed)), ranks_between_halves_(std::max(2, (ranks + 5) / 6)) {}

void ExactInputs::fill_decay(int rank, std::span<float> decay) const {
  for (std::size_t row = 0; row < decay.size(); ++row)
    decay[row] = (scrambled(seed_ ^ row) + rank) % ranks_between_halves_ == 0 ? 0.5f : 1.0f;
}

void ExactInputs::fill_state(int rank, std::span<float> state) const {
  const std::uint64_t key = scrambled(seed_ + static_cast<std::uint64_t>(rank) + 1);
  for (std::size_t i = 0; i < state.size(); ++i)
    state[i] = static_cast<float>(static_cast<int>(scrambled(key ^ i) % 17) - 8);
}

}  // namespace baton
