// SPDX-License-Identifier: Apache-2.0
// The inputs of collectives for all ranks; every process can make those of any rank.
#pragma once

#include <cstdint>
#include <span>

#include "collectives/schedule/slice.hpp"

namespace baton {

/// One set of inputs of a collective. Inputs of different ranks or seeds differ.
class Inputs {
 public:
  virtual ~Inputs() = default;

  /// The decays [rows] of `rank`'s map.
  virtual void fill_decay(int rank, std::span<float> decay) const = 0;
  /// The matrices [heads, d, d] of `rank`'s affine map.
  virtual void fill_matrices(int rank, std::span<float> matrices, std::int64_t d) const = 0;
  /// Fills the decays of a diagonal map, or the matrices [heads, row, row] of an affine map.
  void fill_decays(int rank, std::span<float> decays, MapKind map, std::int64_t row) const {
    map == MapKind::affine ? fill_matrices(rank, decays, row) : fill_decay(rank, decays);
  }
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
/// One decay in eight is zero at one rank, a reset.
///
/// Up to 20 ranks a matrix is the sum of two signed permutations that share no entry, and m is
/// 24 - P, at most 20: two entries of 1 or -1 in each row and column, so that A and A transposed at
/// most double what they act on, and P maps make at most (2^P - 1) 2^m. With more ranks it is one
/// signed permutation, 1 in 2P of whose rows are zero, and m is 24 - ceil(log2 P). One head in four
/// has a rank whose whole matrix is zero, a reset: a sequence begins there.
class ExactInputs : public Inputs {
 public:
  ExactInputs(std::uint64_t seed, int ranks, MapKind map = MapKind::diagonal);

  void fill_decay(int rank, std::span<float> decay) const override;
  void fill_matrices(int rank, std::span<float> matrices, std::int64_t d) const override;
  void fill_state(int rank, std::span<float> state) const override;

  /// m, the bits of the largest magnitude of a state.
  int state_bits() const { return state_bits_; }

  /// True if `rank`'s matrix of head `place`, or its decay of row `place`, is a reset.
  bool is_reset(int rank, std::int64_t place) const;

 private:
  std::uint64_t seed_;
  int ranks_;
  std::uint64_t places_between_resets_;
  std::uint64_t ranks_between_halves_;
  int state_bits_;
};

/// Inputs as real layers have them, for executors that round: states of N(0, 1), decays of
/// sigmoid(N(2, 1)), most of them between 0.7 and 0.95, matrices of N(0, 1/d). Each value has all
/// bits of an f32, so that every rounding changes it.
class GaussianInputs : public Inputs {
 public:
  explicit GaussianInputs(std::uint64_t seed);

  void fill_decay(int rank, std::span<float> decay) const override;
  void fill_matrices(int rank, std::span<float> matrices, std::int64_t d) const override;
  void fill_state(int rank, std::span<float> state) const override;

 private:
  std::uint64_t seed_;
};

}  // namespace baton
