// SPDX-License-Identifier: Apache-2.0
// Roundings at random, by which an oracle finds the size of the terms that its results are sums of.
//
//   x_i <- x_i (1 + u r_i),   u = 2^-24, that of f32,   r_i uniform in [-1, 1] and independent
//
// Inputs are rounded so, and every state and every gradient of a state behind each token. To first
// order a result f then changes by u sum_i r_i t_i, with the terms t_i = x_i df/dx_i. The root mean
// square of that is u / sqrt(3) times the norm of the terms. Where they cancel, f changes by far
// more than u of itself, and arithmetic in f32 is off by as much.
//
// Cost: `rounded_solutions` of the oracle.
// Source: Parker, "Monte Carlo Arithmetic", report CSD-970002 of UCLA, 1997.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/drawn_numbers.hpp"

namespace baton {

/// The key of the random roundings of part `part` of a result with key `key`; 0 if `key` is 0.
inline std::uint64_t rounding_of(std::uint64_t key, std::uint64_t part) {
  return key == 0 ? 0 : key_of(key, part);
}

/// A sequence of random roundings, all zero without a key.
class Roundings {
 public:
  static constexpr double unit = 0x1p-24;

  /// Draws roundings from a key other than 0.
  explicit Roundings(std::uint64_t key = 0) : key_(key) {}

  bool are_drawn() const { return key_ != 0; }
  /// The random error of a number of this size.
  double of(double size) { return are_drawn() ? unit * drawn() * size : 0; }
  void round(std::span<double> values) {
    if (!are_drawn()) return;
    for (double& x : values) x += of(x);
  }

 private:
  /// The next random number, uniform in [-1, 1].
  double drawn() { return static_cast<double>(mixed(key_ + ++number_) >> 11) * 0x1p-52 - 1; }

  std::uint64_t key_, number_ = 0;
};

/// Number of solutions that estimate the size of an error. Their mean square is below a hundredth
/// of the error's square once in 10^7.
inline constexpr int rounded_solutions = 8;

/// Adds the squares of the terms of each element of a result to `squares`, as one of several
/// solutions with random roundings shows them.
inline void add_squares_of_terms(std::vector<double>& squares, std::span<const double> rounded,
                                 std::span<const double> exact) {
  squares.resize(exact.size());
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double terms = (rounded[i] - exact[i]) * std::sqrt(3.0) / Roundings::unit;
    squares[i] += terms * terms / rounded_solutions;
  }
}

}  // namespace baton
