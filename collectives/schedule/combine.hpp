// SPDX-License-Identifier: Apache-2.0
// The operator of every scan here: "decay, then add".
//
//   apply    state'           = decay2 (.) state1 + state2                      a map on a state
//   compose  (decay', state') = (decay2 decay1, decay2 (.) state1 + state2)     a map after a map
//
// Associative, not commutative. Source: the rank-boundary recurrence of gated linear attention, arXiv
// 2507.01004.
#pragma once

#include <cstdint>

#include "collectives/schedule/kernel.hpp"

namespace baton {

/// state' [rows, row] = later_decay [rows] (.) earlier [rows, row] + later [rows, row]. `into` may be
/// `earlier` or `later`.
void apply(float* into, const float* earlier, const float* later_decay, const float* later, std::int64_t rows,
           std::int64_t row);

/// The host body of a combine step. Reads [earlier decay,] earlier state, later decay, later state; writes
/// [decay,] state. With the bracketed two it composes, without them it applies.
void combine_on_host(const HostOperands& operands);

/// Floating-point operations of one combine that yields `state_count` elements of state.
inline double combine_flops(std::int64_t state_count) { return 2.0 * static_cast<double>(state_count); }

}  // namespace baton
