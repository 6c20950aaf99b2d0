// SPDX-License-Identifier: Apache-2.0
// What a function in Python sees of its execution: views of the executor's memory, and messages.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "collectives/executors/routine.hpp"
#include "collectives/schedule/slice.hpp"

namespace baton {

/// One rank's part of one prepared case. Views share the executor's memory, until the case is over.
/// They are NumPy arrays, or what `converts` makes of objects with `__dlpack__`.
class Call {
 public:
  Call(RoutineCall given, nanobind::object converts)
      : given_(std::move(given)), converts_(std::move(converts)) {}

  int rank() const { return given_.rank; }
  int ranks() const { return given_.ranks; }
  int home(int place) const { return given_.home(place); }
  const char* map() const { return to_string(given_.form.kind); }

  /// The CUDA stream that takes the work, as a number; none on processors.
  nanobind::object stream() const;
  /// Views of all operands by the names of their buffers.
  nanobind::dict tensors() const;

  /// Of a scan: the map of this rank in one row.
  nanobind::object own() const;
  /// [rows, 1], or [heads, 1, 1] of a scalar map: it multiplies a state. Raises AttributeError if
  /// the map is affine.
  nanobind::object decay() const;
  /// [heads, row, row] of an affine map: a state times it, from the right, is what the map makes of
  /// the state but for what it adds. Raises AttributeError if the map has decays.
  nanobind::object matrix() const;
  /// [rows, row], or [heads, rows of a head, row] unless the map is diagonal.
  nanobind::object state() const;
  nanobind::object into() const;

  /// The executor's messages. Raises AttributeError if it has none.
  RoutineMessages& messages() const;

 private:
  using Sizes = std::vector<std::int64_t>;
  const RoutineOperand& map_and_state() const { return given_.reads.at(0); }
  const RoutineOperand& result() const { return given_.writes.at(0); }
  /// Number of decays, or of elements of matrices, before the state of the map.
  std::int64_t decays() const { return map_and_state().shape[0] - result().shape[0]; }
  nanobind::object state_view(const RoutineOperand& operand, std::int64_t first) const;
  /// The part of an operand that begins with element `first`.
  nanobind::object view(const RoutineOperand& operand, std::int64_t first, const Sizes& sizes,
                        const Sizes& strides = {}) const;

  RoutineCall given_;
  nanobind::object converts_;
};

}  // namespace baton
