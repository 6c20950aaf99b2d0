// SPDX-License-Identifier: Apache-2.0
// The local kernels as compute steps: which slices they touch, and how spans become the kernels' pointers.
#pragma once

#include <span>
#include <vector>

#include "sp_methods/sp_method.hpp"

namespace baton {

/// The start of a span, or a null pointer where it is empty: kernels take null for what is not there.
inline float* pointer(std::span<float> span) { return span.empty() ? nullptr : span.data(); }
inline const float* pointer(std::span<const float> span) { return span.empty() ? nullptr : span.data(); }

/// A layer's inputs, read as the first four slices of a step: q, k, v, g.
inline std::vector<Slice> input_slices(const LayerTensors& x) { return {x.q, x.k, x.v, x.g}; }
inline GlaInputs inputs_of(const HostOperands& operands) {
  const auto& reads = operands.reads;
  return {reads[0].data(), reads[1].data(), reads[2].data(), pointer(reads[3])};
}

/// The gradients, written as the first four slices of a step: dq, dk, dv, dg.
inline std::vector<Slice> gradient_slices(const LayerTensors& x) { return {x.dq, x.dk, x.dv, x.dg}; }
inline GlaGradients gradients_of(const HostOperands& operands) {
  const auto& writes = operands.writes;
  return {writes[0].data(), writes[1].data(), writes[2].data(), pointer(writes[3])};
}

/// `first` with `more` behind it.
inline std::vector<Slice> with(std::vector<Slice> first, const std::vector<Slice>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

}  // namespace baton
