// SPDX-License-Identifier: Apache-2.0
// The contracts of linear attention in left-product form, block by block as keys and values
// circulate.
//
// Left product means that the left one of the two products in (q k^T) v is formed first. It needs
// no state, and its work is quadratic in the tokens. B is the cumulative log gate since the rank's
// start, T the rank's last token, "between" the decay of the ranks between a rank and the owner of
// a block.
//
//   keys:             k_end = k (.) e^{B_T - B},  decay = e^{B_T};  k_end, v and decay circulate
//   own block:        o  = s tril(q k^T (.) decays) v
//   block of an earlier rank, in the order of arrival r-1, r-2, ..:
//                     o += s (q_block k_end^T) v          q_block = q (.) e^B (.) between
//   extend decay:     between = between (.) decay of that block
//   own gradients:    dq, dk, dv, dg of causal attention within the rank
//   block gradients:  da = s d_o v^T,   a = s q_block k_end^T
//                     dv += a^T d_o,   dk_end += da^T q_block
//                     dq += x := (da k_end) (.) e^B (.) between
//                     dg_i += sum_{u >= i} q_u x_u,   boundary_gate_sum += sum_u q_u x_u
//   home gradients:   dk += y := dk_end (.) e^{B_T - B},   dv += the returned dv
//                     dg_i -= sum_{u >= i} k_u y_u,   boundary_gate_sum -= sum_u k_u y_u
//   edge gradients:   dg_i += the boundary_gate_sum of all later ranks
//
// Every decay is a factor of at most one.
//
// The kernels of a device work in tiles of tokens. They scale queries and keys once a pass, and
// they need f32 accumulators: the tensors get the pairs of tokens within a tile, the accumulators
// get those in different tiles and in other ranks' blocks, and the home and edge gradients add the
// two. The host bodies compute all pairs in the tensors, and set accumulators that are there to
// zero.
//
// Cost: tokens * block_tokens pairs a head, each of 2 (d_k + d_v) flop forward and 6 d_k + 4 d_v
// backward; the own block has half of them. Bytes count each input once and each result once, or
// twice where a result is added to; decays, one number for many tokens, are left out.
// Source: "LASP-2", arXiv 2502.07563, section 4.1 (the left-product baseline); gates' gradients by
// the suffix-sum identity of "Gated Linear Attention Transformers", arXiv 2312.06635, applied
// across ranks.
#pragma once

#include <array>

#include "sp_methods/kernels/shape.hpp"

namespace baton {

/// The parameters of left-product kernels.
struct LeftProduct {
  LayerShape shape;               ///< Shape of this rank's share.
  std::int64_t block_tokens = 0;  ///< Keys of another rank's block.
  Dtype dtype = Dtype::f32;       ///< Type of the tensors; sums and circulating gradients are f32.
  /// True if the call has accumulators, scaled queries and keys, and the decay table.
  bool has_accumulators = false;
  bool circulates = true;  ///< True if there are other ranks.
  KernelTraits kernels;

  bool is_gated() const { return shape.gate != GateKind::none; }
  std::array<std::int64_t, 2> widths() const { return {shape.d_k, shape.d_v}; }
};

/// Layout of the decays of a rank's tiles in f32 scratch memory. Boundary 0 is the rank's start,
/// and boundary i is the end of tile i - 1. A channel is one of heads * d_k.
struct DecayTableLayout {
  std::int64_t channels, tiles;

  explicit DecayTableLayout(const LeftProduct& p)
      : channels(p.shape.heads * p.shape.d_k),
        tiles((p.shape.tokens + p.kernels.tile - 1) / p.kernels.tile) {}
  /// Offset of the log2 of each tile's decay: [tiles, channels].
  static std::int64_t totals() { return 0; }
  /// Offset of the fractions [tiles + 1, channels] of log2 of the decays from the rank's start to
  /// each boundary.
  std::int64_t fractions() const { return tiles * channels; }
  /// Offset of the int32 exponents [tiles + 1, channels] of log2 of the decays from the rank's
  /// start to each boundary.
  std::int64_t exponents() const { return (2 * tiles + 1) * channels; }
  std::int64_t elements() const { return (3 * tiles + 2) * channels; }
};

/// Scaled queries and keys of a rank, from LeftProductKeys; empty without gates or accumulators.
template <class A>
struct ScaledRank {
  /// [2, tokens, heads, d_k]: queries decayed from the start of their tile, keys to its end.
  In<A, Tensor> scaled{};
  In<A, State> decay_table{};  ///< Layout as in DecayTableLayout.
  auto members() { return std::tie(scaled, decay_table); }

  static std::int64_t scaled_elements(const LeftProduct& p) {
    return 2 * p.shape.tokens * p.shape.heads * p.shape.d_k;
  }
  static std::int64_t decay_table_elements(const LeftProduct& p) { return DecayTableLayout(p).elements(); }
};

/// Keys and values of an earlier rank.
template <class A>
struct KeyBlock {
  In<A, Tensor> k{};  ///< [block_tokens, heads, d_k], decayed to the end of their rank.
  In<A, Tensor> v{};  ///< [block_tokens, heads, d_v]
  auto members() { return std::tie(k, v); }
};

/// Makes the keys that circulate, and the rank's scaled queries and keys.
struct LeftProductKeys {
  static constexpr const char* name = "left_product_keys";
  using Parameters = LeftProduct;
  template <class A>
  struct Operands {
    LayerInputs<A> in{};
    Out<A, Tensor> k{};       ///< [tokens, heads, d_k], decayed to the rank's end; may be empty.
    Out<A, State> decay{};    ///< [heads, d_k], of the whole rank; empty on one rank.
    Out<A, Tensor> scaled{};  ///< Layout as in ScaledRank; may be empty.
    /// Layout as in DecayTableLayout; may be empty.
    Out<A, State> decay_table{};
    auto reads() { return in.members(); }
    auto writes() { return std::tie(k, decay, scaled, decay_table); }
  };
  static double flops(const LeftProduct& p);
  static double bytes(const LeftProduct& p);
  static void on_host(const Operands<OnHost>& x, const LeftProduct& p);
};

/// Sets o to the contributions of the rank's own keys.
struct LeftProductOwnBlock {
  static constexpr const char* name = "left_product_own_block";
  using Parameters = LeftProduct;
  template <class A>
  struct Operands {
    LayerInputs<A> in{};
    ScaledRank<A> rank{};
    Out<A, Tensor> o{};             ///< [tokens, heads, d_v]
    Out<A, State> o_accumulator{};  ///< [tokens, heads, d_v]; may be empty.
    auto reads() { return std::tuple_cat(in.members(), rank.members()); }
    auto writes() { return std::tie(o, o_accumulator); }
  };
  static double flops(const LeftProduct& p);
  static double bytes(const LeftProduct& p);
  static void on_host(const Operands<OnHost>& x, const LeftProduct& p);
};

/// Adds the contributions of an earlier rank's keys to o.
struct LeftProductBlock {
  static constexpr const char* name = "left_product_block";
  using Parameters = LeftProduct;
  template <class A>
  struct Operands {
    LayerInputs<A> in{};
    KeyBlock<A> block{};
    In<A, State> between{};  ///< [heads, d_k]; empty means one.
    ScaledRank<A> rank{};
    InOut<A, State> o{};       ///< [tokens, heads, d_v]: the output or its accumulator.
    Out<A, Tensor> q_block{};  ///< [tokens, heads, d_k], scratch memory of a device.
    auto reads() {
      return std::tuple_cat(in.members(), block.members(), std::tie(between), rank.members(), std::tie(o));
    }
    auto writes() { return std::tie(o, q_block); }
  };
  static std::int64_t q_block_elements(const LeftProduct& p) {
    return p.shape.tokens * p.shape.heads * p.shape.d_k;
  }
  static double flops(const LeftProduct& p);
  static double bytes(const LeftProduct& p);
  static void on_host(const Operands<OnHost>& x, const LeftProduct& p);
};

/// Multiplies the decay between two ranks by the decay of one more rank.
struct ExtendDecay {
  static constexpr const char* name = "extend_decay";
  using Parameters = LeftProduct;
  template <class A>
  struct Operands {
    InOut<A, State> between{};  ///< [heads, d_k]
    In<A, State> decay{};       ///< [heads, d_k]
    auto reads() { return std::tie(decay, between); }
    auto writes() { return std::tie(between); }
  };
  static double flops(const LeftProduct& p);
  static double bytes(const LeftProduct& p);
  static void on_host(const Operands<OnHost>& x, const LeftProduct& p);
};

/// Sets the gradients to the contributions of pairs of tokens within the rank.
struct LeftProductOwnGradients {
  static constexpr const char* name = "left_product_own_gradients";
  using Parameters = LeftProduct;
  template <class A>
  struct Operands {
    LayerInputs<A> in{};
    In<A, Tensor> d_o{};  ///< [tokens, heads, d_v]
    ScaledRank<A> rank{};
    LayerGradients<A> out{};
    Out<A, State> dq_accumulator{};  ///< Shape of dq; may be empty.
    /// Shape of dk; may be empty.
    Out<A, State> dk_accumulator{};
    /// Shape of dv; may be empty.
    Out<A, State> dv_accumulator{};
    Out<A, State> gate_terms{};  ///< [tokens, heads, d_k], whose suffix sums are dg; may be empty.
    auto reads() { return std::tuple_cat(in.members(), std::tie(d_o), rank.members()); }
    auto writes() {
      return std::tuple_cat(out.members(),
                            std::tie(dq_accumulator, dk_accumulator, dv_accumulator, gate_terms));
    }
  };
  static double flops(const LeftProduct& p);
  static double bytes(const LeftProduct& p);
  static void on_host(const Operands<OnHost>& x, const LeftProduct& p);
};

/// Adds the contributions of pairs of this rank's queries and an earlier rank's keys to the
/// gradients of both.
struct LeftProductBlockGradients {
  static constexpr const char* name = "left_product_block_gradients";
  using Parameters = LeftProduct;
  template <class A>
  struct Operands {
    LayerInputs<A> in{};
    In<A, Tensor> d_o{};  ///< [tokens, heads, d_v]
    KeyBlock<A> block{};
    In<A, State> between{};  ///< [heads, d_k]; empty means one.
    ScaledRank<A> rank{};
    InOut<A, Tensor> dq{};
    InOut<A, Tensor> dg{};
    InOut<A, State> boundary_gate_sum{};  ///< [heads, d_k], of this rank.
    InOut<A, State> block_dk{};           ///< [block_tokens, heads, d_k], of the decayed keys.
    InOut<A, State> block_dv{};           ///< [block_tokens, heads, d_v]
    InOut<A, State> dq_accumulator{};     ///< [tokens, heads, d_k]; may be empty.
    InOut<A, State> gate_terms{};         ///< [tokens, heads, d_k]; may be empty.
    Out<A, Tensor> q_block{};             ///< [tokens, heads, d_k], scratch memory of a device.
    Out<A, State> block_dq{};             ///< [tokens, heads, d_k], gradient of q_block; scratch memory.
    auto sums() {
      return std::tie(dq, dg, boundary_gate_sum, block_dk, block_dv, dq_accumulator, gate_terms);
    }
    auto reads() {
      return std::tuple_cat(in.members(), std::tie(d_o), block.members(), std::tie(between), rank.members(),
                            sums());
    }
    auto writes() { return std::tuple_cat(sums(), std::tie(q_block, block_dq)); }
  };
  static double flops(const LeftProduct& p);
  static double bytes(const LeftProduct& p);
  static void on_host(const Operands<OnHost>& x, const LeftProduct& p);
};

/// Adds the returned gradients of this rank's own keys and values, and the accumulators, to the
/// gradients.
struct LeftProductHomeGradients {
  static constexpr const char* name = "left_product_home_gradients";
  using Parameters = LeftProduct;
  template <class A>
  struct Operands {
    LayerInputs<A> in{};
    In<A, Tensor> scaled{};
    In<A, State> dv_accumulator{};
    LayerGradients<A> out{};
    InOut<A, State> boundary_gate_sum{};  ///< [heads, d_k]
    // All that follow are declared as written, in one list, though returned_dk, returned_dv and
    // dq_accumulator are only read: a schedule prints that list.
    InOut<A, State> returned_dk{};  ///< [tokens, heads, d_k], of the decayed keys; may be empty.
    InOut<A, State> returned_dv{};  ///< [tokens, heads, d_v]; empty on one rank.
    InOut<A, State> dq_accumulator{};
    InOut<A, State> dk_accumulator{};
    InOut<A, State> gate_terms{};
    InOut<A, State> decay_table{};  ///< Its totals become sums of gate terms over later tiles.
    auto sums() {
      return std::tuple_cat(out.members(), std::tie(boundary_gate_sum, returned_dk, returned_dv,
                                                    dq_accumulator, dk_accumulator, gate_terms, decay_table));
    }
    auto reads() { return std::tuple_cat(in.members(), std::tie(scaled, dv_accumulator), sums()); }
    auto writes() { return sums(); }
  };
  static double flops(const LeftProduct& p);
  static double bytes(const LeftProduct& p);
  static void on_host(const Operands<OnHost>& x, const LeftProduct& p);
};

/// Adds the boundary_gate_sum of all later ranks, and the suffix sums of the gate terms, to dg.
struct LeftProductEdgeGradients {
  static constexpr const char* name = "left_product_edge_gradients";
  struct Parameters : LeftProduct {
    bool is_last = false;  ///< True if no rank is later and `later` is empty.
  };
  template <class A>
  struct Operands {
    In<A, State> later{};  ///< [heads, d_k], the sum over later ranks.
    In<A, State> gate_terms{};
    In<A, State> decay_table{};
    InOut<A, Tensor> dg{};
    auto reads() { return std::tie(later, dg, gate_terms, decay_table); }
    auto writes() { return std::tie(dg); }
  };
  static double flops(const Parameters& p);
  static double bytes(const Parameters& p);
  static void on_host(const Operands<OnHost>& x, const Parameters& p);
};

}  // namespace baton
