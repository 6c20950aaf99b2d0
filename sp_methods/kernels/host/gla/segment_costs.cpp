// SPDX-License-Identifier: Apache-2.0
// Operations as the chunkwise kernels count them, and bytes: each tensor once, states of edges and chunks once.
#include "sp_methods/kernels/host/gla/segment_costs.hpp"

#include "sp_methods/kernels/host/gla/inter_gradients.hpp"
#include "sp_methods/kernels/host/gla/inter_output.hpp"
#include "sp_methods/kernels/host/gla/intra_gradients.hpp"
#include "sp_methods/kernels/host/gla/intra_output.hpp"

namespace baton {

double SegmentCosts::tensors(std::int64_t keys, std::int64_t values, std::int64_t gates) const {
  const auto width = static_cast<double>(keys * shape.d_k + values * shape.d_v + gates * shape.gate_width());
  return shape.rows() * width * static_cast<double>(element);
}

double SegmentCosts::edges() const {
  const auto rows = static_cast<double>(shape.heads * shape.d_k * (segments + 1));
  return 4.0 * rows * static_cast<double>(shape.d_v + 1);
}

double SegmentCosts::starts() const {
  return shape.state_elements() * static_cast<double>(shape.chunks() * element);
}

double SegmentCosts::states_flops() const { return chunk_states_flops(shape); }
double SegmentCosts::scan_flops() const {
  return 2.0 * shape.state_elements() * static_cast<double>(segments);
}
double SegmentCosts::output_flops() const {
  return chunk_states_flops(shape) + intra_output_flops(shape) + inter_output_flops(shape);
}
double SegmentCosts::gradients_flops() const {
  return chunk_state_gradients_flops(shape) + intra_gradients_flops(shape) + inter_gradients_flops(shape);
}

double SegmentCosts::states_bytes() const { return tensors(1, 1, 1) + edges(); }
double SegmentCosts::scan_bytes() const { return 2 * edges(); }
double SegmentCosts::output_bytes() const { return tensors(2, 2, 1) + edges(); }
double SegmentCosts::chunk_starts_bytes() const { return tensors(1, 1, 1) + edges() + starts(); }
double SegmentCosts::gradients_bytes() const { return tensors(4, 3, 2) + edges() + starts(); }

SegmentCosts costs_of(const Segments& cut) {
  GlaShape shape = cut.shape;
  shape.heads = cut.work.heads(cut.shape);
  return {shape, cut.count, bytes_of(cut.dtype)};
}

double SegmentOutput::flops(const Segments& cut) { return costs_of(cut).output_flops(); }
double SegmentOutput::bytes(const Segments& cut) { return costs_of(cut).output_bytes(); }

}  // namespace baton
