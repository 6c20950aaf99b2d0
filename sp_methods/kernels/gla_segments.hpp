// SPDX-License-Identifier: Apache-2.0
// The contracts of gated linear attention's kernels in segments: runs of whole chunks whose states
// alone are kept, so that a device with one block a head and segment reads each tensor once and
// writes few states.
//
//   forward:    segment_states            S of every segment from zero
//               scan_segments             scan over segments, the map; the exchange may start
//               segment_output            o, from the segment's true state
//   backward:   segment_state_gradients   D of every segment from its right
//               scan_segments             as above, right to left; the exchange may start
//               chunk_starts              S before every chunk as its segment makes it, and S of
//                                         every segment, both from zero, beside the exchange
//               segment_starts            scan over segments: the true S before each
//               segment_gradients         dq dk dv dg
//   after a forward pass of the same schedule chunk_starts begins with its states at edges, and
//   segment_starts is left out
//
// Segments and their edges are numbered the way the pass goes: in the backward pass segment 0 is
// the last one. Tensors are [tokens, heads, width] of the whole layer; states and gates are [heads,
// ..] of the call's heads alone.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (chunkwise form); "ZeCO", arXiv
// 2507.01004.
#pragma once

#include <algorithm>
#include <array>
#include <tuple>

#include "sp_methods/kernels/gla_chunks.hpp"

namespace baton {

/// Parameters of a kernel in segments.
struct Segments {
  LayerShape shape;
  Work work;
  std::int64_t count = 1;    ///< Number of segments, at most the number of chunks.
  Dtype dtype = Dtype::f32;  ///< Type of the tensors.

  std::array<std::int64_t, 2> widths() const { return {shape.d_k, shape.d_v}; }
  Chunks chunks() const { return {shape, work}; }
  /// Bytes of `keys` tensors of width d_k, `values` of width d_v and `gates` of the gate's width.
  double tensors(std::int64_t keys, std::int64_t values, std::int64_t gates) const {
    const auto row = static_cast<double>(keys * shape.d_k + values * shape.d_v + gates * shape.gate_width());
    return chunks().own().token_rows() * row * static_cast<double>(bytes_of(dtype));
  }
  /// Bytes of the f32 states at the edges of segments, with their gates.
  double edges() const {
    const auto rows = static_cast<double>(work.heads(shape) * shape.d_k * (count + 1));
    return 4.0 * rows * static_cast<double>(shape.d_v + 1);
  }
  /// Bytes of the states before all chunks, in the type of the tensors.
  double starts() const {
    return chunks().own().state_elements() * static_cast<double>(shape.chunks() * bytes_of(dtype));
  }
};

/// Number of segments that gives each of `blocks` thread blocks one head and one segment. It is
/// between 1 and the number of chunks.
inline std::int64_t segment_count(const LayerShape& shape, std::int64_t heads, std::int64_t blocks) {
  return std::clamp<std::int64_t>(blocks / heads, 1, shape.chunks());
}

/// True states at the edges of segments: states + e^gates (.) incoming.
template <class A>
struct SegmentEdges {
  In<A, State> states{};    ///< [heads, segments + 1, d_k, d_v]; null means zero.
  In<A, State> gates{};     ///< [heads, segments + 1, d_k]: log decay from edge 0 to the edge.
  In<A, State> incoming{};  ///< [heads, d_k, d_v]; null means zero.
  auto members() { return std::tie(states, gates, incoming); }
};

/// Writes the state that every segment adds, and its total log decay. Reads k, v and g.
struct SegmentStates {
  static constexpr const char* name = "segment_states";
  using Parameters = Segments;
  template <class A>
  struct Operands {
    LayerInputs<A> in{};
    Out<A, State> states{};  ///< [heads, segments + 1, d_k, d_v]; the last edge is not written.
    Out<A, State> totals{};  ///< [heads, segments, d_k]
    auto reads() { return in.members(); }
    auto writes() { return std::tie(states, totals); }
  };
  static double flops(const Segments& cut) { return ChunkStates::flops(cut.chunks()); }
  static double bytes(const Segments& cut) { return cut.tensors(1, 1, 1) + cut.edges(); }
  static void on_host(const Operands<OnHost>& x, const Segments& cut);
};

/// Writes the state gradient that every segment adds from its right, and its total log decay. Reads
/// q, g and d_o.
struct SegmentStateGradients {
  static constexpr const char* name = "segment_state_gradients";
  using Parameters = Segments;
  template <class A>
  struct Operands {
    LayerInputs<A> in{};
    In<A, Tensor> d_o{};  ///< [tokens, heads, d_v]
    Out<A, State> states{}, totals{};
    auto reads() { return std::tuple_cat(in.members(), std::tie(d_o)); }
    auto writes() { return std::tie(states, totals); }
  };
  static double flops(const Segments& cut) { return SegmentStates::flops(cut); }
  static double bytes(const Segments& cut) { return SegmentStates::bytes(cut); }
  static void on_host(const Operands<OnHost>& x, const Segments& cut);
};

/// Turns the states that single segments add into states at their edges for an incoming state of
/// zero, and writes the rank's map.
struct ScanSegments {
  static constexpr const char* name = "scan_segments";
  using Parameters = Segments;
  template <class A>
  struct Operands {
    In<A, State> totals{};      ///< [heads, segments, d_k]
    InOut<A, State> states{};   ///< [heads, segments + 1, d_k, d_v]
    Out<A, State> gates{};      ///< [heads, segments + 1, d_k]
    Out<A, State> map_decay{};  ///< [heads, d_k]
    Out<A, State> map_state{};  ///< [heads, d_k, d_v]
    auto reads() { return std::tie(states, totals); }
    auto writes() { return std::tie(states, gates, map_decay, map_state); }
  };
  static double flops(const Segments& cut) {
    return 2.0 * cut.chunks().own().state_elements() * static_cast<double>(cut.count);
  }
  static double bytes(const Segments& cut) { return 2 * cut.edges(); }
  static void on_host(const Operands<OnHost>& x, const Segments& cut);
};

/// Writes o from the true state before every segment.
struct SegmentOutput {
  static constexpr const char* name = "segment_output";
  using Parameters = Segments;
  template <class A>
  struct Operands {
    LayerInputs<A> in{};
    SegmentEdges<A> before{};
    Out<A, Tensor> o{};  ///< [tokens, heads, d_v]
    auto reads() { return std::tuple_cat(in.members(), before.members()); }
    auto writes() { return std::tie(o); }
  };
  static double flops(const Segments& cut) {
    const Chunks p = cut.chunks();
    return ChunkStates::flops(p) + IntraOutput::flops(p) + InterOutput::flops(p);
  }
  static double bytes(const Segments& cut) { return cut.tensors(2, 2, 1) + cut.edges(); }
  static void on_host(const Operands<OnHost>& x, const Segments& cut);
};

/// Writes the state before every chunk, from zero or from given states at the starts of segments.
/// Null outputs are not written. Reads k, v and g. A body may keep a state's elements in an order
/// of its own, as that of segment_starts does, since segment_gradients alone reads them.
struct ChunkStarts {
  static constexpr const char* name = "chunk_starts";
  using Parameters = Segments;
  template <class A>
  struct Operands {
    LayerInputs<A> in{};
    SegmentEdges<A> before{};  ///< States before segments; null means zero.
    Out<A, Tensor> starts{};   ///< [heads, chunks, d_k, d_v]
    Out<A, State> decays{};    ///< [heads, chunks, d_k]: from the segment's first token to the chunk.
    Out<A, State> states{};    ///< [heads, segments + 1, d_k, d_v], as from SegmentStates.
    /// [heads, segments, d_k], as from SegmentStates.
    Out<A, State> totals{};
    auto reads() { return std::tuple_cat(in.members(), before.members()); }
    auto writes() { return std::tie(starts, decays, states, totals); }
  };
  static double flops(const Segments& cut) { return SegmentStates::flops(cut); }
  static double bytes(const Segments& cut) { return cut.tensors(1, 1, 1) + cut.edges() + cut.starts(); }
  static void on_host(const Operands<OnHost>& x, const Segments& cut);
};

/// Writes the true state before every segment from the states that the segments add.
struct SegmentStarts {
  static constexpr const char* name = "segment_starts";
  using Parameters = Segments;
  template <class A>
  struct Operands {
    In<A, State> totals{};    ///< [heads, segments, d_k]
    In<A, State> states{};    ///< [heads, segments + 1, d_k, d_v]; the last edge is not read.
    In<A, State> incoming{};  ///< [heads, d_k, d_v]; null means zero.
    Out<A, Tensor> starts{};  ///< [heads, segments, d_k, d_v]
    auto reads() { return std::tie(totals, states, incoming); }
    auto writes() { return std::tie(starts); }
  };
  static double flops(const Segments& cut) { return ScanSegments::flops(cut); }
  static double bytes(const Segments& cut) {
    const double written = cut.chunks().own().state_elements() * static_cast<double>(cut.count);
    return cut.edges() + written * static_cast<double>(bytes_of(cut.dtype));
  }
  static void on_host(const Operands<OnHost>& x, const Segments& cut);
};

/// True states before chunks: chunks + decays (.) the state before the chunk's segment.
template <class A>
struct ChunkStartsInSegments {
  In<A, Tensor> chunks{};    ///< [heads, chunks, d_k, d_v]: from chunk_starts; null means zero.
  In<A, State> decays{};     ///< [heads, chunks, d_k]: from chunk_starts.
  In<A, Tensor> segments{};  ///< [heads, segments, d_k, d_v]; null where `chunks` are true states.
  auto members() { return std::tie(chunks, decays, segments); }
};

/// Writes the gradients of a layer's inputs.
struct SegmentGradients {
  static constexpr const char* name = "segment_gradients";
  using Parameters = Segments;
  template <class A>
  struct Operands {
    LayerInputs<A> in{};
    In<A, Tensor> d_o{};  ///< [tokens, heads, d_v]
    ChunkStartsInSegments<A> before{};
    SegmentEdges<A> after{};  ///< From the scan of segment_state_gradients.
    LayerGradients<A> out{};
    auto reads() { return std::tuple_cat(in.members(), std::tie(d_o), before.members(), after.members()); }
    auto writes() { return out.members(); }
  };
  static double flops(const Segments& cut) {
    const Chunks p = cut.chunks();
    return ChunkStateGradients::flops(p) + IntraGradients::flops(p) + InterGradients::flops(p);
  }
  static double bytes(const Segments& cut) { return cut.tensors(4, 3, 2) + cut.edges() + cut.starts(); }
  static void on_host(const Operands<OnHost>& x, const Segments& cut);
};

}  // namespace baton
