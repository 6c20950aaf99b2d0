// SPDX-License-Identifier: Apache-2.0
// Inputs of a collective under verification.
#pragma once

#include <cstdint>
#include <span>

namespace baton {

/// One set of inputs for all ranks; every process can make any rank's.
class Inputs {
 public:
  virtual ~Inputs() = default;

  /// The decays [rows] of `rank`'s map.
  virtual void fill_decay(int rank, std::span<float> decay) const = 0;
  /// A state, or any other payload, of `rank`.
  virtual void fill_state(int rank, std::span<float> state) const = 0;
};

/// 64 bits of which any change of `x` changes about half.
std::uint64_t scrambled(std::uint64_t x);

}  // namespace baton
