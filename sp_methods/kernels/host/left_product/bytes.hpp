// SPDX-License-Identifier: Apache-2.0
// What the kernels of left_product.hpp and left_product_gradients.hpp move.
#pragma once

#include "sp_methods/kernels/gla_shape.hpp"

namespace baton {

/// Bytes that must move in one call: each input once, each result once (read and written where it is added to). Tensors,
/// and keys and values on their way, have elements of `element` bytes; sums, rests and travelling gradients are f32.
/// Decays, one number for many tokens, are left out.
struct LeftProductBytes {
  GlaShape shape;
  std::int64_t element = 4;
  /// In the device's form: queries and keys are scaled once, and rests lie beside the tensors that they belong to.
  bool has_rests = false;

  /// `travels`: whether keys are made that go round.
  double keys(bool travels) const;
  double own_block() const;
  double block(std::int64_t columns) const;
  double own_gradients() const;
  double block_gradients(std::int64_t columns) const;
  /// `travelled`: whether gradients come home, and not the rests alone.
  double home_gradients(bool travelled) const;

 private:
  double tensors(std::int64_t keys, std::int64_t values, std::int64_t gates) const;
  double sums(std::int64_t keys, std::int64_t values) const;
  double scaled() const;
  double block_elements(std::int64_t columns) const;
  bool is_gated() const { return shape.gate != GateKind::none; }
};

}  // namespace baton
