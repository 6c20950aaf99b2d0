// SPDX-License-Identifier: Apache-2.0
// The contracts of the short causal convolution before q, k and v of linear attention, over a run
// of tokens that follow one another. For each channel, with weights w_0 .. w_{W-1}:
//
//   z_t = sum_i w_i x_{t-W+1+i}          y_t = silu(z_t), of q and k of a delta rule over its norm
//   dx_s = sum_i w_i dz_{s+W-1-i}        dw_i = sum_t dz_t x_{t-W+1+i}
//
// The rows before the run are its halo, or zero. Terms of another document are left out.
// A kernel makes the rows [first, first + count) of the run.
// Cost: 2 W flop a channel and token for each of y, dz, dx and dw.
// Source: "Gated Delta Networks", arXiv 2412.06464; "Kimi Linear", arXiv 2510.26692; the norm is
// that of fla-org/flash-linear-attention, fla/modules/l2norm.py.
#pragma once

#include <cstdint>
#include <vector>

#include "sp_methods/kernels/contracts.hpp"
#include "sp_methods/kernels/shape.hpp"

namespace baton {

/// Added to the sum of squares of a row of q or k before its root is taken.
inline constexpr float unit_row_epsilon = 1e-6F;

/// A run of tokens, and the rows of it that a call makes.
struct ConvShape {
  LayerShape share;  ///< Of the run.
  bool has_unit_rows = false;
  /// Tokens, ascending, at which a document starts; those of the halo are negative.
  std::vector<std::int64_t> starts = {};
  std::int64_t first = 0;
  std::int64_t count = 0;
  Dtype dtype = Dtype::f32;
  /// Where the halo's gradients that other ranks made are added: rows from this one on.
  std::int64_t later = 0;

  std::int64_t width() const { return share.conv; }
  /// Number of rows of a halo.
  std::int64_t before() const { return share.conv - 1; }
  /// Channels of q, k and v of a head, whose weights follow one another.
  std::int64_t channels() const { return 2 * share.d_k + share.d_v; }
  /// Heads of a sequence, which have weights of their own.
  std::int64_t weight_heads() const { return share.heads / share.batch; }
  /// The same run, of which a call makes other rows.
  ConvShape rows(std::int64_t from, std::int64_t rows) const {
    ConvShape part = *this;
    part.first = from;
    part.count = rows;
    return part;
  }
  double elements() const { return static_cast<double>(count * share.heads * channels()); }
  double flops() const { return 2 * elements() * static_cast<double>(width()); }
};

/// Rows of q, k and v that a kernel reads: [rows, heads, width] each.
template <class A, class Kind>
struct ConvIn {
  In<A, Kind> q{};
  In<A, Kind> k{};
  In<A, Kind> v{};
  auto members() { return std::tie(q, k, v); }
};

/// Rows of q, k and v that a kernel writes.
template <class A, class Kind>
struct ConvOut {
  Out<A, Kind> q{};
  Out<A, Kind> k{};
  Out<A, Kind> v{};
  auto members() { return std::tie(q, k, v); }
};

/// What the convolution is computed from.
template <class A>
struct ConvInputs {
  ConvIn<A, Tensor> x{};     ///< The rows of the run.
  ConvIn<A, Tensor> halo{};  ///< The rows before it, or null for zeros.
  In<A, State> w{};          ///< [weight heads, channels, width]
  auto members() { return std::tuple_cat(x.members(), halo.members(), std::tie(w)); }
};

/// y of some rows.
struct Conv {
  static constexpr const char* name = "conv";
  using Parameters = ConvShape;
  template <class A>
  struct Operands {
    ConvInputs<A> in{};
    ConvOut<A, Tensor> y{};  ///< [count, heads, width]
    auto reads() { return in.members(); }
    auto writes() { return y.members(); }
  };
  static double flops(const Parameters& p) { return p.flops(); }
  static double bytes(const Parameters& p) {
    return 2 * p.elements() * static_cast<double>(bytes_of(p.dtype));
  }
  static void on_host(const Operands<OnHost>& x, const Parameters& p);
};

/// dz of some rows, from the gradients of y.
struct ConvActivationGradients {
  static constexpr const char* name = "conv_activation_gradients";
  using Parameters = ConvShape;
  template <class A>
  struct Operands {
    ConvInputs<A> in{};
    ConvIn<A, Tensor> dy{};  ///< [count, heads, width]
    ConvOut<A, State> dz{};  ///< [count, heads, width]
    auto reads() { return std::tuple_cat(in.members(), dy.members()); }
    auto writes() { return dz.members(); }
  };
  static double flops(const Parameters& p) { return p.flops(); }
  static double bytes(const Parameters& p) {
    return p.elements() * static_cast<double>(2 * bytes_of(p.dtype) + 4);
  }
  static void on_host(const Operands<OnHost>& x, const Parameters& p);
};

/// dx of some rows, from dz of the whole run and what other ranks made of the last rows.
struct ConvInputGradients {
  static constexpr const char* name = "conv_input_gradients";
  using Parameters = ConvShape;
  template <class A>
  struct Operands {
    ConvIn<A, State> dz{};     ///< [tokens of the run, heads, width]
    In<A, State> w{};          ///< [weight heads, channels, width]
    ConvIn<A, State> later{};  ///< Of the rows from `later` on; null for zeros.
    ConvOut<A, Tensor> dx{};   ///< [count, heads, width]
    auto reads() { return std::tuple_cat(dz.members(), std::tie(w), later.members()); }
    auto writes() { return dx.members(); }
  };
  static double flops(const Parameters& p) { return p.flops(); }
  static double bytes(const Parameters& p) {
    return p.elements() * static_cast<double>(bytes_of(p.dtype) + 4);
  }
  static void on_host(const Operands<OnHost>& x, const Parameters& p);
};

/// What dz of the first tokens of a run adds to dx of the halo: rows -before() .. -1.
struct ConvHaloGradients {
  static constexpr const char* name = "conv_halo_gradients";
  using Parameters = ConvShape;
  template <class A>
  struct Operands {
    ConvIn<A, State> dz{};   ///< [count, heads, width] of the first tokens
    In<A, State> w{};        ///< [weight heads, channels, width]
    ConvOut<A, State> dx{};  ///< [before, heads, width]
    auto reads() { return std::tuple_cat(dz.members(), std::tie(w)); }
    auto writes() { return dx.members(); }
  };
  static double flops(const Parameters& p) { return p.flops() / 2; }
  static double bytes(const Parameters& p) { return 8 * p.elements(); }
  static void on_host(const Operands<OnHost>& x, const Parameters& p);
};

/// Adds dw of a run.
struct ConvWeightGradients {
  static constexpr const char* name = "conv_weight_gradients";
  using Parameters = ConvShape;
  template <class A>
  struct Operands {
    ConvInputs<A> in{};
    ConvIn<A, State> dz{};  ///< [tokens of the run, heads, width]
    InOut<A, State> dw{};   ///< [weight heads, channels, width]
    auto reads() { return std::tuple_cat(in.members(), dz.members(), std::tie(dw)); }
    auto writes() { return std::tie(dw); }
  };
  static double flops(const Parameters& p) { return p.flops(); }
  static double bytes(const Parameters& p) {
    return p.elements() * static_cast<double>(bytes_of(p.dtype) + 4);
  }
  static void on_host(const Operands<OnHost>& x, const Parameters& p);
};

}  // namespace baton
