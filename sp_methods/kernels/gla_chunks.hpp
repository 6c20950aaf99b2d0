// SPDX-License-Identifier: Apache-2.0
// The contracts of gated linear attention's chunkwise kernels, which keep the state of every chunk.
//
//   forward:    chunk_states             | intra_output                  | inter_output
//   backward:   chunk_state_gradients    | chunk_states, intra_gradients | inter_gradients
//               makes the map to exchange| needs no other rank           | needs the incoming state
//
// Tensors are [tokens, heads, width] of the whole layer; states and decays are [heads, ..] of the
// call's heads alone.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (chunkwise form); "ZeCO", arXiv
// 2507.01004.
#pragma once

#include <array>
#include <tuple>

#include "sp_methods/kernels/contracts.hpp"
#include "sp_methods/kernels/shape.hpp"

namespace baton {

/// Parameters of a chunkwise kernel.
struct Chunks {
  LayerShape shape;
  Work work = {};
  Dtype dtype = Dtype::f32;  ///< Type of the tensors.

  std::array<std::int64_t, 2> widths() const { return {shape.d_k, shape.d_v}; }
  /// The shape with the heads of this call alone, for costs.
  LayerShape own() const {
    LayerShape own = shape;
    own.heads = work.heads(shape);
    return own;
  }
  /// Floating-point operations of `products` products of a tile of tokens with a state.
  double state_flops(double products) const {
    return products * 2.0 * static_cast<double>(shape.tokens) * own().state_elements();
  }
  /// Bytes of f32 for `row` numbers a token and head, `count` states with their decays, and
  /// `more_states` states without.
  double bytes(std::int64_t row, std::int64_t count, double more_states = 0) const {
    const LayerShape s = own();
    const double edges =
        static_cast<double>(count) * (s.state_elements() + static_cast<double>(s.heads * s.d_k));
    return 4.0 * (s.token_rows() * static_cast<double>(row) + edges + more_states * s.state_elements());
  }
};

/// True states at the edges of chunks: states + decays (.) incoming.
template <class A>
struct ChunkEdges {
  In<A, State> states{};    ///< [heads, chunks, d_k, d_v]: before (backward: after) each chunk.
  In<A, State> decays{};    ///< [heads, chunks, d_k]: from the rank's edge to the chunk's.
  In<A, State> incoming{};  ///< [heads, d_k, d_v], from other ranks; null means zero.
  auto members() { return std::tie(states, decays, incoming); }
};

/// Writes the states at the edges of a rank's chunks if the incoming state is zero, and the rank's
/// map. Reads k, v and g.
struct ChunkStates {
  static constexpr const char* name = "chunk_states";
  using Parameters = Chunks;
  template <class A>
  struct Operands {
    LayerInputs<A> in{};
    Out<A, State> states{};     ///< [heads, chunks, d_k, d_v]: before (backward: after) each chunk.
    Out<A, State> decays{};     ///< [heads, chunks, d_k]: from the rank's edge to the chunk's.
    Out<A, State> map_decay{};  ///< [heads, d_k]: the decay over the whole rank.
    Out<A, State> map_state{};  ///< [heads, d_k, d_v]: what the rank adds.
    auto reads() { return in.members(); }
    auto writes() { return std::tie(states, decays, map_decay, map_state); }
  };
  static double flops(const Chunks& p) { return p.state_flops(1); }
  static double bytes(const Chunks& p) {
    const LayerShape& s = p.shape;
    return p.bytes(s.d_k + s.d_v + s.gate_width(), s.chunks() + 1);
  }
  static void on_host(const Operands<OnHost>& x, const Chunks& p);
};

/// Writes the state gradients at the edges of a rank's chunks if the one behind the rank is zero,
/// and the rank's map of the backward pass. Reads q, g and d_o.
struct ChunkStateGradients {
  static constexpr const char* name = "chunk_state_gradients";
  using Parameters = Chunks;
  template <class A>
  struct Operands {
    LayerInputs<A> in{};
    In<A, Tensor> d_o{};  ///< [tokens, heads, d_v]
    Out<A, State> states{}, decays{}, map_decay{}, map_state{};
    auto reads() { return std::tuple_cat(in.members(), std::tie(d_o)); }
    auto writes() { return std::tie(states, decays, map_decay, map_state); }
  };
  static double flops(const Chunks& p) { return ChunkStates::flops(p); }
  static double bytes(const Chunks& p) { return ChunkStates::bytes(p); }
  static void on_host(const Operands<OnHost>& x, const Chunks& p);
};

/// Sets o to the contributions of keys in the chunk of the query.
struct IntraOutput {
  static constexpr const char* name = "intra_output";
  using Parameters = Chunks;
  template <class A>
  struct Operands {
    LayerInputs<A> in{};
    Out<A, Tensor> o{};  ///< [tokens, heads, d_v]
    auto reads() { return in.members(); }
    auto writes() { return std::tie(o); }
  };
  static double flops(const Chunks& p) {
    const LayerShape s = p.own();
    return 2.0 * s.chunk_pairs() * static_cast<double>(s.heads * (s.d_k + s.d_v));
  }
  static double bytes(const Chunks& p) {
    return p.bytes(2 * p.shape.d_k + 2 * p.shape.d_v + p.shape.gate_width(), 0);
  }
  static void on_host(const Operands<OnHost>& x, const Chunks& p);
};

/// Adds the contributions of the states before each chunk to o. Reads q and g.
struct InterOutput {
  static constexpr const char* name = "inter_output";
  using Parameters = Chunks;
  template <class A>
  struct Operands {
    LayerInputs<A> in{};
    ChunkEdges<A> before{};
    InOut<A, Tensor> o{};  ///< [tokens, heads, d_v]
    auto reads() { return std::tuple_cat(in.members(), before.members(), std::tie(o)); }
    auto writes() { return std::tie(o); }
  };
  static double flops(const Chunks& p) { return p.state_flops(1); }
  static double bytes(const Chunks& p) {
    const LayerShape& s = p.shape;
    return p.bytes(s.d_k + s.gate_width() + 2 * s.d_v, s.chunks(), 1);
  }
  static void on_host(const Operands<OnHost>& x, const Chunks& p);
};

/// Sets the gradients to the contributions of pairs of tokens within a chunk.
struct IntraGradients {
  static constexpr const char* name = "intra_gradients";
  using Parameters = Chunks;
  template <class A>
  struct Operands {
    LayerInputs<A> in{};
    In<A, Tensor> d_o{};  ///< [tokens, heads, d_v]
    LayerGradients<A> out{};
    auto reads() { return std::tuple_cat(in.members(), std::tie(d_o)); }
    auto writes() { return out.members(); }
  };
  static double flops(const Chunks& p) {
    const LayerShape s = p.own();
    return s.chunk_pairs() * static_cast<double>(s.heads * (6 * s.d_k + 4 * s.d_v));
  }
  static double bytes(const Chunks& p) {
    return p.bytes(4 * p.shape.d_k + 3 * p.shape.d_v + 2 * p.shape.gate_width(), 0);
  }
  static void on_host(const Operands<OnHost>& x, const Chunks& p);
};

/// Adds the contributions that cross the edges of chunks to the gradients.
struct InterGradients {
  static constexpr const char* name = "inter_gradients";
  using Parameters = Chunks;
  template <class A>
  struct Operands {
    LayerInputs<A> in{};
    In<A, Tensor> d_o{};      ///< [tokens, heads, d_v]
    ChunkEdges<A> before{};   ///< From chunk_states, with the prefix of earlier ranks.
    ChunkEdges<A> after{};    ///< From chunk_state_gradients, with the suffix of later ranks.
    LayerGradients<A> out{};  ///< Sums, which are read and written.
    auto reads() {
      return std::tuple_cat(in.members(), std::tie(d_o), before.members(), after.members(), out.members());
    }
    auto writes() { return out.members(); }
  };
  static double flops(const Chunks& p) { return p.state_flops(3); }
  static double bytes(const Chunks& p) {
    const LayerShape& s = p.shape;
    return p.bytes(6 * s.d_k + 4 * s.d_v + 3 * s.gate_width(), 2 * s.chunks(), 2);
  }
  static void on_host(const Operands<OnHost>& x, const Chunks& p);
};

}  // namespace baton
