// SPDX-License-Identifier: Apache-2.0
// bf16 on the host: the upper half of an f32, 8 significant bits.
#pragma once

#include <bit>
#include <cstdint>

namespace baton {

/// The largest relative error of a value rounded to bf16.
inline constexpr double bf16_roundoff = 1.0 / 256;

/// Rounded to the nearest, ties to even; what is not a number stays so.
inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  return static_cast<std::uint16_t>((value == value ? rounded : bits | 0x400000) >> 16);
}

inline float from_bf16(std::uint16_t narrow) { return std::bit_cast<float>(std::uint32_t{narrow} << 16); }

}  // namespace baton
