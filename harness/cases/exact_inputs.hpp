// SPDX-License-Identifier: Apache-2.0
// Inputs whose every sum and product is exact in f32, so that any algorithm and any order of combination must
// agree to the last bit: states of small integers, decays of 1 and 1/2 with at most six halves down any
// column of ranks.
//
// With |state| <= 8 and P ranks a prefix has at most 4 + log2 P bits before the point and 6 behind: 24 at P =
// 16384.
#pragma once

#include <cstdint>
#include <span>

#include "harness/cases/inputs.hpp"

namespace baton {

class ExactInputs : public Inputs {
 public:
  ExactInputs(std::uint64_t seed, int ranks);

  void fill_decay(int rank, std::span<float> decay) const override;
  void fill_state(int rank, std::span<float> state) const override;

 private:
  std::uint64_t seed_;
  std::uint64_t ranks_between_halves_;
};

}  // namespace baton
