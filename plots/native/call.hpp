// SPDX-License-Identifier: Apache-2.0
// What a native in Python sees of its execution: views of the executor's memory, and messages.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <initializer_list>
#include <span>

#include "collectives/executors/tcp/native.hpp"
#include "collectives/schedule/slice.hpp"

namespace baton {

/// Valid during the call. Views share the executor's memory. They are NumPy arrays, or what
/// `converts` makes of objects with `__dlpack__`.
class Call {
 public:
  Call(tcp::Call& given, nanobind::handle converts) : given_(given), converts_(converts) {}

  int rank() const { return given_.rank; }
  int ranks() const { return given_.ranks; }
  int home(int place) const { return given_.home(place); }
  const char* map() const { return to_string(given_.form.kind); }

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

  void send(std::span<const float> from, int to) const { given_.send(from, to); }
  void receive(std::span<float> into, int from) const { given_.receive(into, from); }

 private:
  using Sizes = std::initializer_list<std::int64_t>;
  std::span<const float> map_and_state() const { return given_.operands.reads[0]; }
  std::span<float> result() const { return given_.operands.writes[0]; }
  std::int64_t decays() const { return static_cast<std::int64_t>(map_and_state().size() - result().size()); }
  nanobind::object state_view(const float* first) const;
  nanobind::object view(const float* first, Sizes sizes, Sizes strides = {}) const;

  tcp::Call& given_;
  nanobind::handle converts_;
};

}  // namespace baton
