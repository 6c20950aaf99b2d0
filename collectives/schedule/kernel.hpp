// SPDX-License-Identifier: Apache-2.0
// The local computations of one rank: the named kernel of a `compute` step, and the operator of
// every scan.
//
//   apply    state'           = decay2 (.) state1 + state2                      a map on a state
//   compose  (decay', state') = (decay2 decay1, decay2 (.) state1 + state2)     a map after a map
//
// "Decay, then add" is associative, not commutative. An affine map has a matrix A a head in the
// decay's place: every row x of the state becomes A x, or A^T x, and then the row of state2 is
// added. Sources: the recurrence of gated linear attention at the boundary of ranks, arXiv
// 2507.01004; that of the delta rule, arXiv 2412.06464.
#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collectives/schedule/slice.hpp"

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
  /// The parameters of the contract. The device body, found by `name`, knows their type.
  std::any parameters;
};

/// state' [rows, row] = later_decay [rows] (.) earlier [rows, row] + later [rows, row]. `into` may
/// be `earlier` or `later`.
void apply(float* into, const float* earlier, const float* later_decay, const float* later, std::int64_t rows,
           std::int64_t row);

/// The operator of a combine step: the form of the later map's decays, and the elements of a row.
struct Combine {
  MapForm form;
  std::int64_t row = 1;
};

/// The host body of a combine step. It reads [earlier decay,] earlier state, later decay, later
/// state and writes [decay,] state. It composes if the bracketed two are given, and applies
/// otherwise.
void combine_on_host(const HostOperands& operands, const Combine& by = {});

/// Floating-point operations of one combine that yields `state_count` elements of state and
/// `decay_count` of decay: two an element of state, or two for each element of a row if a matrix
/// makes it.
inline double combine_flops(const Combine& by, std::int64_t state_count, std::int64_t decay_count) {
  if (by.form.kind != MapKind::affine) return 2.0 * static_cast<double>(state_count);
  return 2.0 * static_cast<double>(by.row) * static_cast<double>(state_count + decay_count);
}

}  // namespace baton
