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

#include <any>
#include <cstddef>
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
  /// The parameters of the contract. The device body, found by `name`, knows their type.
  std::any parameters;
};

/// state' [rows, row] = later_decay [rows] (.) earlier [rows, row] + later [rows, row]. `into` may
/// be `earlier` or `later`.
inline void apply(float* into, const float* earlier, const float* later_decay, const float* later,
                  std::int64_t rows, std::int64_t row) {
  for (std::int64_t i = 0; i < rows; ++i) {
    const float decay = later_decay[i];
    const std::int64_t begin = i * row;
    for (std::int64_t j = begin; j < begin + row; ++j) into[j] = decay * earlier[j] + later[j];
  }
}

/// The host body of a combine step. It reads [earlier decay,] earlier state, later decay, later
/// state and writes [decay,] state. It composes if the bracketed two are given, and applies
/// otherwise.
inline void combine_on_host(const HostOperands& operands) {
  const bool composes = operands.writes.size() == 2;
  const auto earlier = operands.reads[composes ? 1 : 0];
  const auto later_decay = operands.reads[composes ? 2 : 1];
  const auto later = operands.reads[composes ? 3 : 2];
  const auto rows = static_cast<std::int64_t>(later_decay.size());
  const auto row = static_cast<std::int64_t>(later.size()) / rows;
  apply(operands.writes.back().data(), earlier.data(), later_decay.data(), later.data(), rows, row);
  if (!composes) return;
  // The decay is computed last because in place it overwrites an operand of the state.
  const auto decay = operands.writes.front();
  const auto earlier_decay = operands.reads[0];
  for (std::size_t i = 0; i < decay.size(); ++i) decay[i] = later_decay[i] * earlier_decay[i];
}

/// Floating-point operations of one combine that yields `state_count` elements of state.
inline double combine_flops(std::int64_t state_count) { return 2.0 * static_cast<double>(state_count); }

}  // namespace baton
