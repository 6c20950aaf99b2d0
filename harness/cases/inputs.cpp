// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/inputs.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "collectives/drawn_numbers.hpp"

namespace baton {
namespace {

/// The halves that a column of `ranks` decays may have.
int most_halves(int ranks) { return ranks <= 8 ? 2 : 3; }

/// The keys of the decays and of the state of a rank.
std::uint64_t decay_key(std::uint64_t seed, int rank) {
  return key_of(seed, 2 * static_cast<std::uint64_t>(rank));
}
std::uint64_t state_key(std::uint64_t seed, int rank) {
  return key_of(seed, 2 * static_cast<std::uint64_t>(rank) + 1);
}

}  // namespace

ExactInputs::ExactInputs(std::uint64_t seed, int ranks)
    : seed_(seed),
      ranks_between_halves_(std::max(2, (ranks + most_halves(ranks) - 1) / most_halves(ranks))),
      state_bits_(24 - most_halves(ranks) - std::bit_width(static_cast<unsigned>(std::max(ranks, 1) - 1))) {}

void ExactInputs::fill_decay(int rank, std::span<float> decay) const {
  // Each row halves at one rank of every run of ranks_between_halves_.
  const std::uint64_t key = mixed(seed_);
  for (std::size_t row = 0; row < decay.size(); ++row)
    decay[row] =
        (mixed(key ^ row) + static_cast<std::uint64_t>(rank)) % ranks_between_halves_ == 0 ? 0.5f : 1.0f;
}

void ExactInputs::fill_state(int rank, std::span<float> state) const {
  const std::uint64_t key = state_key(seed_, rank);
  const int largest = 1 << state_bits_;
  for (std::size_t i = 0; i < state.size(); ++i)
    state[i] = static_cast<float>(static_cast<int>(mixed(key ^ i) >> (63 - state_bits_)) - largest);
}

GaussianInputs::GaussianInputs(std::uint64_t seed) : seed_(seed) {}

void GaussianInputs::fill_decay(int rank, std::span<float> decay) const {
  const std::uint64_t key = decay_key(seed_, rank);
  for (std::size_t row = 0; row < decay.size(); ++row)
    decay[row] = 1 / (1 + std::exp(-2 - normal_value(key ^ row)));
}

void GaussianInputs::fill_state(int rank, std::span<float> state) const {
  const std::uint64_t key = state_key(seed_, rank);
  for (std::size_t i = 0; i < state.size(); ++i) state[i] = normal_value(key ^ i);
}

}  // namespace baton
