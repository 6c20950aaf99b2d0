// SPDX-License-Identifier: Apache-2.0
// Gaussian inputs from a hash of seed, rank and position.
#include "harness/cases/gaussian_inputs.hpp"

#include <array>
#include <cmath>
#include <random>

namespace baton {
namespace {

constexpr int drawn_bits = 16;

/// Normal values to draw from, with replacement: a logarithm an element would take longer than the rounds.
const std::array<float, 1 << drawn_bits>& normal_values() {
  static const auto values = [] {
    std::array<float, 1 << drawn_bits> drawn{};
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    for (float& value : drawn) value = normal(random);
    return drawn;
  }();
  return values;
}

float normal_value(std::uint64_t number) { return normal_values()[scrambled(number) >> (64 - drawn_bits)]; }

}  // namespace

void GaussianInputs::fill_decay(int rank, std::span<float> decay) const {
  const std::uint64_t key = scrambled(~(seed_ + static_cast<std::uint64_t>(rank)));
  for (std::size_t row = 0; row < decay.size(); ++row)
    decay[row] = 1 / (1 + std::exp(-2 - normal_value(key ^ row)));
}

void GaussianInputs::fill_state(int rank, std::span<float> state) const {
  const std::uint64_t key = scrambled(seed_ + static_cast<std::uint64_t>(rank) + 1);
  for (std::size_t i = 0; i < state.size(); ++i) state[i] = normal_value(key ^ i);
}

}  // namespace baton
