// SPDX-License-Identifier: Apache-2.0
// Inputs as real layers have them, for executors that round: states of N(0, 1), decays of sigmoid(N(2, 1)), most between
// 0.7 and 0.95. Each value has all bits of an f32, so that no rounding of it is exact.
#pragma once

#include <cstdint>
#include <span>

#include "harness/cases/inputs.hpp"

namespace baton {

class GaussianInputs : public Inputs {
 public:
  explicit GaussianInputs(std::uint64_t seed) : seed_(scrambled(seed)) {}

  void fill_decay(int rank, std::span<float> decay) const override;
  void fill_state(int rank, std::span<float> state) const override;

 private:
  std::uint64_t seed_;
};

}  // namespace baton
