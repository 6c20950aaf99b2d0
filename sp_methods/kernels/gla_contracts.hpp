// SPDX-License-Identifier: Apache-2.0
// The contracts of gated linear attention's kernels.
//
// Tensors are [tokens, heads, width] of the whole layer; states and decays are those of the call's heads.
#pragma once

#include <array>

#include "sp_methods/kernels/contracts.hpp"
#include "sp_methods/kernels/gla_shape.hpp"

namespace baton {

/// Into how many segments a call cuts its chunks.
struct Segments {
  GlaShape shape;
  Work work;
  std::int64_t count = 1;    ///< At most as many as there are chunks.
  Dtype dtype = Dtype::f32;  ///< Of the tensors.

  std::array<std::int64_t, 2> widths() const { return {shape.d_k, shape.d_v}; }
};

/// States at the edges of segments: states + e^gates (.) incoming.
template <class A>
struct SegmentEdges {
  In<A, State> states{};    ///< [heads, segments + 1, d_k, d_v]
  In<A, State> gates{};     ///< [heads, segments + 1, d_k]: the log decay from edge 0 to the edge.
  In<A, State> incoming{};  ///< [heads, d_k, d_v]; null means zero.
  auto members() { return std::tie(states, gates, incoming); }
};

/// Writes o [tokens, heads, d_v] of the call's heads.
struct SegmentOutput {
  static constexpr const char* name = "segment_output";
  using Parameters = Segments;

  template <class A>
  struct Operands {
    LayerInputs<A> in{};
    SegmentEdges<A> before{};
    Out<A, Tensor> o{};
    auto reads() { return std::tuple_cat(in.members(), before.members()); }
    auto writes() { return std::tie(o); }
  };

  static double flops(const Segments& cut);
  static double bytes(const Segments& cut);
  static void on_host(const Operands<OnHost>& x, const Segments& cut);
};

}  // namespace baton
