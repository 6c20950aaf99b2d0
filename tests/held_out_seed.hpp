// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

namespace baton {

/// The seed of problems that are other ones in every run of a test. BATON_SEED repeats one of them.
inline std::uint64_t held_out_seed() {
  static const std::uint64_t seed = [] {
    const char* given = std::getenv("BATON_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  }();
  return seed;
}

}  // namespace baton
