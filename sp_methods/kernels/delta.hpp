// SPDX-License-Identifier: Apache-2.0
// The contracts of the kernels of linear attention with a delta rule. A rank's tokens map the state
// by S' = A S + B with a matrix A a head.
//
//   S' = Diag(e^{g_t}) S_{t-1}          vn_t = beta_t (v_t - S'^T k_t)
//   S_t = S' + k_t vn_t^T               o_t = s S_t^T q_t          s = d_k^{-1/2}
//
//   forward:    delta_map makes (A, B)               | delta_output from the state that came
//      or:      delta_output from zero, delta_correction | delta_correct with the state that came
//   backward:   delta_state_gradients makes Dloc     | delta_gradients from both states
//
// The gate is a number a channel (Kimi Delta Attention), a number a head (Gated DeltaNet) or none
// (DeltaNet). The backward map of a rank is A transposed and Dloc, so A is made once.
// Tensors are [tokens, heads, width] of the whole layer. States [heads, d_v, d_k], values first,
// and matrices [heads, d_k, d_k] are of the call's heads alone. A row x of a state becomes A x, and
// a row of A is contiguous: so an affine map of collectives has them (decision 23).
// Source: "Gated Delta Networks", arXiv 2412.06464; "Kimi Linear", arXiv 2510.26692.
#pragma once

#include <tuple>

#include "sp_methods/kernels/contracts.hpp"
#include "sp_methods/kernels/gla_chunks.hpp"
#include "sp_methods/kernels/kept_maps.hpp"
#include "sp_methods/kernels/shape.hpp"

namespace baton {

/// The inputs of a layer with a delta rule, which contracts for keys of length one and beta in [0,
/// 2].
template <class A>
struct DeltaInputs {
  LayerInputs<A> of{};
  In<A, Tensor> beta{};  ///< Strengths of the writes: [tokens, heads].
  auto members() { return std::tuple_cat(of.members(), std::tie(beta)); }
};

/// The gradients of a layer's inputs, shaped as the inputs; dg is the gradient of the natural-log
/// gate.
template <class A>
struct DeltaGradientsOut {
  LayerGradients<A> of{};
  Out<A, Tensor> dbeta{};  ///< [tokens, heads]
  auto members() { return std::tuple_cat(of.members(), std::tie(dbeta)); }
};

/// Operands of a kernel that writes the affine map S' = A S + B of a rank's tokens; `Inputs` is
/// DeltaInputs or LowRankInputs.
template <class A, template <class> class Inputs>
struct MapOperands {
  Inputs<A> in{};
  Out<A, State> map_matrix{};  ///< A [heads, d_k, d_k]; not written if null.
  Out<A, State> map_state{};   ///< B [heads, d_v, d_k], what the tokens add; not written if null.
  Out<A, State> kept{};        ///< What a device keeps of both (KeptMaps); null to keep nothing.
  auto reads() { return in.members(); }
  auto writes() { return std::tie(map_matrix, map_state, kept); }
};

template <class A, template <class> class Inputs>
struct OutputOperands {
  Inputs<A> in{};
  In<A, State> incoming{};  ///< [heads, d_v, d_k]; null means zero.
  In<A, State> kept{};      ///< What the map of the same inputs has kept; null if it has not.
  Out<A, Tensor> o{};       ///< [tokens, heads, d_v]
  Out<A, State> keeps{};    ///< In place of `kept`: where the output keeps the same; null for nothing.
  auto reads() { return std::tuple_cat(in.members(), std::tie(incoming, kept)); }
  auto writes() { return std::tie(o, keeps); }
};

template <class A, template <class> class Inputs>
struct CorrectionOperands {
  Inputs<A> in{};
  Out<A, Tensor> correction{};  ///< [tokens, heads, d_k]
  auto reads() { return in.members(); }
  auto writes() { return std::tie(correction); }
};

template <class A, template <class> class Inputs>
struct StateGradientOperands {
  Inputs<A> in{};
  In<A, Tensor> d_o{};        ///< [tokens, heads, d_v]
  In<A, State> kept{};        ///< What the map of the same inputs has kept; null if it has not.
  Out<A, State> map_state{};  ///< Dloc [heads, d_v, d_k]
  Out<A, State> keeps{};      ///< What a device keeps for the gradients (kept_gradients); or null.
  auto reads() { return std::tuple_cat(in.members(), std::tie(d_o, kept)); }
  auto writes() { return std::tie(map_state, keeps); }
};

template <class A, template <class> class Inputs, template <class> class Gradients>
struct GradientOperands {
  Inputs<A> in{};
  In<A, Tensor> d_o{};            ///< [tokens, heads, d_v]
  In<A, State> before{};          ///< State before the first token [heads, d_v, d_k]; null means zero.
  In<A, State> after{};           ///< Gradient of the state behind the last token; null means zero.
  In<A, State> kept{};            ///< What the map of the same inputs has kept; null if it has not.
  In<A, State> kept_gradients{};  ///< What the state gradients have kept; null if they have not.
  Gradients<A> out{};
  auto reads() { return std::tuple_cat(in.members(), std::tie(d_o, before, after, kept, kept_gradients)); }
  auto writes() { return out.members(); }
};

/// Cost of the chunkwise kernels of a rule with matrices.
struct DeltaCost {
  explicit DeltaCost(const Chunks& p)
      : heads(static_cast<double>(p.own().heads)),
        rows(p.own().token_rows()),
        pairs(p.own().chunk_pairs() * heads),
        d_k(static_cast<double>(p.shape.d_k)),
        d_v(static_cast<double>(p.shape.d_v)),
        gate(static_cast<double>(p.shape.gate_width())),
        element(static_cast<double>(bytes_of(p.dtype))) {}

  /// Bytes of `row` numbers a token and head, and of `states` states and `matrices` matrices a
  /// head.
  double bytes(double row, double states, double matrices = 0) const {
    return element * rows * row + 4.0 * heads * d_k * (states * d_v + matrices * d_k);
  }

  double heads;
  double rows;   ///< tokens * heads
  double pairs;  ///< Sum over heads and chunks of (tokens of the chunk)^2.
  double d_k, d_v, gate;
  double element;  ///< Bytes of a tensor's element; states are f32.
};

/// Writes the map of a rank's tokens, without reading q.
struct DeltaMap {
  static constexpr const char* name = "delta_map";
  using Parameters = Chunks;
  /// What a device keeps of a call.
  static KeptMaps kept(const Chunks& p) { return {p, delta_chunk_bytes(p.shape.gate, p.shape.d_k)}; }
  template <class A>
  using Operands = MapOperands<A, DeltaInputs>;
  /// Floating-point operations if both outputs are written.
  static double flops(const Chunks& p) {
    const DeltaCost c(p);
    return c.pairs * (3 * c.d_k + c.d_v) + 4 * c.rows * c.d_k * (c.d_k + c.d_v);
  }
  static double bytes(const Chunks& p) {
    const DeltaCost c(p);
    return c.bytes(c.d_k + c.d_v + c.gate + 1, 1, 1);
  }
  static void on_host(const Operands<OnHost>& x, const Chunks& p);
};

/// Sets o from the state before the rank's first token.
struct DeltaOutput {
  static constexpr const char* name = "delta_output";
  using Parameters = Chunks;
  template <class A>
  using Operands = OutputOperands<A, DeltaInputs>;
  static double flops(const Chunks& p) {
    const DeltaCost c(p);
    return c.pairs * (4 * c.d_k + 3 * c.d_v) + 6 * c.rows * c.d_k * c.d_v;
  }
  static double bytes(const Chunks& p) {
    const DeltaCost c(p);
    return c.bytes(2 * c.d_k + 2 * c.d_v + c.gate + 1, 1);
  }
  static void on_host(const Operands<OnHost>& x, const Chunks& p);
};

/// Writes the operator C [tokens, heads, d_k] by which o depends on the incoming state S: o_t =
/// (o_t from zero) + S C_t, where C has the scale. v is not read.
struct DeltaCorrection {
  static constexpr const char* name = "delta_correction";
  using Parameters = Chunks;
  template <class A>
  using Operands = CorrectionOperands<A, DeltaInputs>;
  static double flops(const Chunks& p) {
    const DeltaCost c(p);
    return c.pairs * 7 * c.d_k + 6 * c.rows * c.d_k * c.d_k;
  }
  static double bytes(const Chunks& p) {
    const DeltaCost c(p);
    return c.bytes(3 * c.d_k + c.gate + 1, 0);
  }
  static void on_host(const Operands<OnHost>& x, const Chunks& p);
};

/// Adds S correction_t to every o_t, where S is the incoming state.
struct DeltaCorrect {
  static constexpr const char* name = "delta_correct";
  using Parameters = Chunks;
  template <class A>
  struct Operands {
    In<A, Tensor> correction{};  ///< [tokens, heads, d_k]
    In<A, State> incoming{};     ///< [heads, d_v, d_k]; null means zero.
    InOut<A, Tensor> o{};        ///< [tokens, heads, d_v]
    auto reads() { return std::tie(correction, incoming, o); }
    auto writes() { return std::tie(o); }
  };
  static double flops(const Chunks& p) { return p.state_flops(1); }
  static double bytes(const Chunks& p) {
    const DeltaCost c(p);
    return c.bytes(c.d_k + 2 * c.d_v, 1);
  }
  static void on_host(const Operands<OnHost>& x, const Chunks& p);
};

/// Writes the gradient of the state before the rank's first token if the gradient behind the rank
/// is zero. Neither v nor a state is read.
struct DeltaStateGradients {
  static constexpr const char* name = "delta_state_gradients";
  using Parameters = Chunks;
  template <class A>
  using Operands = StateGradientOperands<A, DeltaInputs>;
  static double flops(const Chunks& p) { return DeltaOutput::flops(p); }
  static double bytes(const Chunks& p) {
    const DeltaCost c(p);
    return c.bytes(2 * c.d_k + c.d_v + c.gate + 1, 1);
  }
  static void on_host(const Operands<OnHost>& x, const Chunks& p);
};

/// Sets all gradients of the inputs from the state before the rank and the gradient of the state
/// behind it.
struct DeltaGradients {
  static constexpr const char* name = "delta_gradients";
  using Parameters = Chunks;
  template <class A>
  using Operands = GradientOperands<A, DeltaInputs, DeltaGradientsOut>;
  static double flops(const Chunks& p) {
    const DeltaCost c(p);
    return c.pairs * (12 * c.d_k + 8 * c.d_v) + 16 * c.rows * c.d_k * c.d_v;
  }
  static double bytes(const Chunks& p) {
    const DeltaCost c(p);
    return c.bytes(4 * c.d_k + 3 * c.d_v + 2 * c.gate + 2, 2);
  }
  static void on_host(const Operands<OnHost>& x, const Chunks& p);
};

}  // namespace baton
