// SPDX-License-Identifier: Apache-2.0
// The local computations of one rank: the named kernel of a `compute` step, and the operator of
// every scan.
//
//   apply    state'           = decay2 (.) state1 + state2                      a map on a state
//   compose  (decay', state') = (decay2 decay1, decay2 (.) state1 + state2)     a map after a map
//
// "Decay, then add" is associative, not commutative. Source: the recurrence of gated linear
// attention at the boundary of ranks, arXiv 2507.01004.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace baton {

/// The operands of one step in host memory, in the order of the step's slices.
struct HostOperands {
  std::vector<std::span<float>> writes;
  std::vector<std::span<const float>> reads;
};

/// A named local computation with its host body and its cost.
struct Kernel {
  std::string name;
  std::function<void(const HostOperands&)> body;
  /// Floating-point operations of one call.
  double flops = 0;
  /// The least bytes that one call must move: each operand once.
  double bytes = 0;
  /// The numbers that the body was made with, in the kernel's own order. A device body is found by
  /// `name` and learns the shape from them alone.
  std::vector<std::int64_t> parameters;
};

/// state' [rows, row] = later_decay [rows] (.) earlier [rows, row] + later [rows, row]. `into` may
/// be `earlier` or `later`.
void apply(float* into, const float* earlier, const float* later_decay, const float* later, std::int64_t rows,
           std::int64_t row);

/// The host body of a combine step. It reads [earlier decay,] earlier state, later decay, later
/// state and writes [decay,] state. It composes if the bracketed two are given, and applies
/// otherwise.
void combine_on_host(const HostOperands& operands);

/// Floating-point operations of one combine that yields `state_count` elements of state.
inline double combine_flops(std::int64_t state_count) { return 2.0 * static_cast<double>(state_count); }

}  // namespace baton
