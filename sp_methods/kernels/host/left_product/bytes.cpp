// SPDX-License-Identifier: Apache-2.0
// Tensors in their own type, sums in f32.
#include "sp_methods/kernels/host/left_product/bytes.hpp"

namespace baton {

double LeftProductBytes::tensors(std::int64_t keys, std::int64_t values, std::int64_t gates) const {
  const auto width = static_cast<double>(keys * shape.d_k + values * shape.d_v + gates * shape.gate_width());
  return shape.rows() * width * static_cast<double>(element);
}

double LeftProductBytes::sums(std::int64_t keys, std::int64_t values) const {
  return 4.0 * shape.rows() * static_cast<double>(keys * shape.d_k + values * shape.d_v);
}

double LeftProductBytes::scaled() const { return has_rests && is_gated() ? tensors(2, 0, 0) : 0; }

double LeftProductBytes::block_elements(std::int64_t columns) const {
  return static_cast<double>(columns * shape.heads * (shape.d_k + shape.d_v));
}

double LeftProductBytes::keys(bool travels) const {
  return tensors(travels ? 2 : 1, 0, 1) + (has_rests ? tensors(1, 0, 0) + scaled() : 0);
}

double LeftProductBytes::own_block() const {
  return tensors(2, 2, 1) + scaled() + (has_rests ? sums(0, 1) : 0);
}

double LeftProductBytes::block(std::int64_t columns) const {
  return tensors(1, 0, 1) + sums(0, 2) + block_elements(columns) * static_cast<double>(element);
}

double LeftProductBytes::own_gradients() const {
  return tensors(4, 3, 2) + scaled() + (has_rests ? sums(is_gated() ? 3 : 2, 1) : 0);
}

double LeftProductBytes::block_gradients(std::int64_t columns) const {
  const double gates = has_rests ? sums(is_gated() ? 2 : 0, 0) : tensors(0, 0, 2);
  return tensors(1, 1, 1) + sums(2, 0) + gates +
         block_elements(columns) * (static_cast<double>(element) + 2 * 4.0);
}

double LeftProductBytes::home_gradients(bool travelled) const {
  double bytes = 0;
  if (has_rests) bytes += tensors(4, 2, 0) + sums(is_gated() ? 3 : 2, 1);  // dq, dk, dv and what is added
  if (!travelled) return bytes;
  bytes += sums(1, 1);
  if (!has_rests) bytes += tensors(2, 2, 2);         // dk, dv and dg
  if (is_gated()) bytes += tensors(1, 0, 1);         // the key as it travelled
  if (has_rests && is_gated()) bytes += sums(1, 0);  // dg as it is summed up
  return bytes;
}

}  // namespace baton
