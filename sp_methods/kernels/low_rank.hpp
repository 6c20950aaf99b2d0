// SPDX-License-Identifier: Apache-2.0
// The contracts of the kernels of linear attention whose tokens map the state by a diagonal matrix
// plus one of rank one, of keys of its own. RWKV-7 is of this form.
//
//   u_t = S_{t-1}^T a_t          S_t = Diag(e^{g_t}) S_{t-1} + b_t u_t^T + k_t v_t^T
//   o_t = s S_t^T q_t            s = d_k^{-1/2}
//
//   forward:    low_rank_map makes (A, B)            | low_rank_output from the state that came
//      or:      low_rank_output from zero, low_rank_correction
//                                                    | delta_correct with the state that came
//   backward:   low_rank_state_gradients makes Dloc  | low_rank_gradients from both states
//
// A delta rule reads and erases along its one key, a = e^g (.) k and b = -beta k. RWKV-7 reads
// along a removal key kappa of length one, a = -kappa, erases along b = kappa (.) eta with a rate
// eta for each channel, and writes along a third key k. Its gates are above -e^{-1/2}. The kernels
// take a token's gates down to -20.
// Layouts are those of delta.hpp, and the matrix of a rank is made and used alike.
// Source: "RWKV-7 Goose with Expressive Dynamic State Evolution", arXiv 2503.14456;
// fla-org/flash-linear-attention, fla/ops/generalized_delta_rule (the general form).
#pragma once

#include <tuple>

#include "sp_methods/kernels/delta.hpp"

namespace baton {

/// The inputs of a layer with a low-rank rule.
template <class A>
struct LowRankInputs {
  LayerInputs<A> of{};
  In<A, Tensor> a{};  ///< Key by which a token reads the state: [tokens, heads, d_k].
  In<A, Tensor> b{};  ///< Key along which a token adds what it has read: [tokens, heads, d_k].
  auto members() { return std::tuple_cat(of.members(), std::tie(a, b)); }
};

/// The gradients of a layer's inputs, shaped as the inputs; dg is the gradient of the natural-log
/// gate.
template <class A>
struct LowRankGradientsOut {
  LayerGradients<A> of{};
  Out<A, Tensor> da{};
  Out<A, Tensor> db{};
  auto members() { return std::tuple_cat(of.members(), std::tie(da, db)); }
};

/// Writes the map of a rank's tokens, without reading q.
struct LowRankMap {
  static constexpr const char* name = "low_rank_map";
  using Parameters = Chunks;
  /// What a device keeps of a call.
  static KeptMaps kept(const Chunks& p) { return {p, low_rank_chunk_bytes(p.shape.d_k)}; }
  template <class A>
  using Operands = MapOperands<A, LowRankInputs>;
  /// Floating-point operations if both outputs are written.
  static double flops(const Chunks& p) {
    const DeltaCost c(p);
    return c.pairs * (5 * c.d_k + 3 * c.d_v) + c.rows * c.d_k * (4 * c.d_k + 6 * c.d_v);
  }
  static double bytes(const Chunks& p) {
    const DeltaCost c(p);
    return c.bytes(3 * c.d_k + c.d_v + c.gate, 1, 1);
  }
  static void on_host(const Operands<OnHost>& x, const Chunks& p);
};

/// Sets o from the state before the rank's first token.
struct LowRankOutput {
  static constexpr const char* name = "low_rank_output";
  using Parameters = Chunks;
  template <class A>
  using Operands = OutputOperands<A, LowRankInputs>;
  static double flops(const Chunks& p) {
    const DeltaCost c(p);
    return c.pairs * (8 * c.d_k + 7 * c.d_v) + 8 * c.rows * c.d_k * c.d_v;
  }
  static double bytes(const Chunks& p) {
    const DeltaCost c(p);
    return c.bytes(4 * c.d_k + 2 * c.d_v + c.gate, 1);
  }
  static void on_host(const Operands<OnHost>& x, const Chunks& p);
};

/// Writes the operator C [tokens, heads, d_k] by which o depends on the incoming state S: o_t =
/// (o_t from zero) + S C_t, where C has the scale. k and v are not read. DeltaCorrect adds S C_t.
struct LowRankCorrection {
  static constexpr const char* name = "low_rank_correction";
  using Parameters = Chunks;
  template <class A>
  using Operands = CorrectionOperands<A, LowRankInputs>;
  static double flops(const Chunks& p) { return DeltaCorrection::flops(p); }
  static double bytes(const Chunks& p) {
    const DeltaCost c(p);
    return c.bytes(4 * c.d_k + c.gate, 0);
  }
  static void on_host(const Operands<OnHost>& x, const Chunks& p);
};

/// Writes the gradient of the state before the rank's first token if the gradient behind the rank
/// is zero. Neither k, v nor a state is read.
struct LowRankStateGradients {
  static constexpr const char* name = "low_rank_state_gradients";
  using Parameters = Chunks;
  template <class A>
  using Operands = StateGradientOperands<A, LowRankInputs>;
  static double flops(const Chunks& p) { return DeltaStateGradients::flops(p); }
  static double bytes(const Chunks& p) {
    const DeltaCost c(p);
    return c.bytes(3 * c.d_k + c.d_v + c.gate, 1);
  }
  static void on_host(const Operands<OnHost>& x, const Chunks& p);
};

/// Sets all gradients of the inputs from the state before the rank and the gradient of the state
/// behind it.
struct LowRankGradients {
  static constexpr const char* name = "low_rank_gradients";
  using Parameters = Chunks;
  template <class A>
  using Operands = GradientOperands<A, LowRankInputs, LowRankGradientsOut>;
  static double flops(const Chunks& p) {
    const DeltaCost c(p);
    return c.pairs * (24 * c.d_k + 18 * c.d_v) + 22 * c.rows * c.d_k * c.d_v;
  }
  static double bytes(const Chunks& p) {
    const DeltaCost c(p);
    return c.bytes(8 * c.d_k + 3 * c.d_v + 2 * c.gate, 2);
  }
  static void on_host(const Operands<OnHost>& x, const Chunks& p);
};

}  // namespace baton
