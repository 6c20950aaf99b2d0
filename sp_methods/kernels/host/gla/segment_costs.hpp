// SPDX-License-Identifier: Apache-2.0
// What the kernels of segments.hpp cost.
#pragma once

#include "sp_methods/kernels/gla_contracts.hpp"

namespace baton {

/// Floating-point operations and least bytes of one call, for tensors of `element` bytes. The shape has the call's heads.
struct SegmentCosts {
  GlaShape shape;
  std::int64_t segments = 1;
  std::int64_t element = 4;

  double states_flops() const;
  double scan_flops() const;
  double output_flops() const;
  double chunk_starts_flops() const { return states_flops(); }
  double gradients_flops() const;

  double states_bytes() const;
  double state_gradients_bytes() const { return states_bytes(); }
  double scan_bytes() const;
  double output_bytes() const;
  double chunk_starts_bytes() const;
  double gradients_bytes() const;

 private:
  double tensors(std::int64_t keys, std::int64_t values, std::int64_t gates) const;
  double edges() const;
  double starts() const;
};

/// The costs of a recorded call.
SegmentCosts costs_of(const Segments& cut);

}  // namespace baton
