// SPDX-License-Identifier: Apache-2.0
// Random numbers that every process can make: each is a function of a key and of its own number,
// so that none is sent and none depends on the order in which they are drawn.
#pragma once

#include <array>
#include <cstdint>
#include <random>

namespace baton {

/// 64 bits of which any change of `x` changes about half: the finaliser of SplitMix64.
constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// A key for the values of `part`, such as a rank, under `key`.
constexpr std::uint64_t key_of(std::uint64_t key, std::uint64_t part) { return mixed(mixed(key) + part); }

inline constexpr int drawn_bits = 16;

/// N(0, 1) values to draw from with replacement: a logarithm per element would take longer than the
/// rounds.
inline const std::array<float, 1 << drawn_bits>& normal_values() {
  static const auto values = [] {
    std::array<float, 1 << drawn_bits> drawn{};
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    for (float& value : drawn) value = normal(random);
    return drawn;
  }();
  return values;
}

/// The N(0, 1) value called `number`.
inline float normal_value(std::uint64_t number) {
  return normal_values()[mixed(number) >> (64 - drawn_bits)];
}

}  // namespace baton
