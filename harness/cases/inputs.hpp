// SPDX-License-Identifier: Apache-2.0
// The inputs of collectives for all ranks; every process can make those of any rank.
#pragma once

#include <cstdint>
#include <span>

namespace baton {

/// One set of inputs of a collective. Those of different ranks and seeds differ.
class Inputs {
 public:
  virtual ~Inputs() = default;

  /// The decays [rows] of `rank`'s map.
  virtual void fill_decay(int rank, std::span<float> decay) const = 0;
  /// A state, or any other payload, of `rank`.
  virtual void fill_state(int rank, std::span<float> state) const = 0;
};

/// Inputs whose every sum and product is exact in f32, so that all algorithms and all orders of
/// combination must agree to the last bit: decays of 1 and 1/2 with at most h halves in any column
/// of ranks (2 up to 8 ranks, else 3), states of random integers s with |s| <= 2^m, where
/// m = 24 - h - ceil(log2 P).
///
/// Whatever an algorithm computes on the way is a sum of at most P terms 2^-n s of different ranks
/// with n <= h. It is a multiple of 2^-h of magnitude at most P 2^m, so 2^h times it is an integer
/// of at most 2^24, which f32 holds. At P = 4 a state has 20 bits and a sign, at P = 64 it has 15.
class ExactInputs : public Inputs {
 public:
  ExactInputs(std::uint64_t seed, int ranks);

  void fill_decay(int rank, std::span<float> decay) const override;
  void fill_state(int rank, std::span<float> state) const override;

  /// m, the bits of the largest magnitude of a state.
  int state_bits() const { return state_bits_; }

 private:
  std::uint64_t seed_;
  std::uint64_t ranks_between_halves_;
  int state_bits_;
};

/// Inputs as real layers have them, for executors that round: states of N(0, 1), decays of
/// sigmoid(N(2, 1)), most of them between 0.7 and 0.95. Each value has all bits of an f32, so that
/// every rounding changes it.
class GaussianInputs : public Inputs {
 public:
  explicit GaussianInputs(std::uint64_t seed);

  void fill_decay(int rank, std::span<float> decay) const override;
  void fill_state(int rank, std::span<float> state) const override;

 private:
  std::uint64_t seed_;
};

}  // namespace baton
