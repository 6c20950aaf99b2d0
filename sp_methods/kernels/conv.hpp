// SPDX-License-Identifier: Apache-2.0
// The contracts of the short causal convolution before q, k or v of linear attention, over a run
// of tokens that follow one another. For each channel, with weights w_0 .. w_{W-1}:
//
//   z_t = b + sum_i w_i x_{t-W+1+i}      y_t = silu(z_t), of q and k of a delta rule over its norm
//   dx_s = sum_i w_i dz_{s+W-1-i}        dw_i = sum_t dz_t x_{t-W+1+i}
//
// A channel's bias b, which not all layers have, is the last of its weights; db = sum_t dz_t.
// The rows before the run are its halo, or zero. Terms of another document are left out.
// A kernel makes the rows [first, first + count) of the run.
// Cost: 2 W flop a channel and token for each of y, dz, dx and dw.
// Source: "Gated Delta Networks", arXiv 2412.06464; "Kimi Linear", arXiv 2510.26692; the norm is
// that of fla-org/flash-linear-attention, fla/modules/l2norm.py.
#pragma once

#include <cstdint>
#include <vector>

#include "sp_methods/kernels/contracts.hpp"

namespace baton {

/// Added to the sum of squares of a row of q or k before its root is taken.
inline constexpr float unit_row_epsilon = 1e-6F;

/// A tensor [tokens, heads, width] of a run of tokens, and the rows of it that a call makes.
struct ConvShape {
  std::int64_t tokens = 0;
  std::int64_t heads = 1;
  std::int64_t width = 0;
  std::int64_t taps = 0;   ///< W, the number of rows that a sum has.
  std::int64_t batch = 1;  ///< Number of sequences, which share the weights.
  bool has_unit_rows = false;
  bool has_bias = false;
  Dtype dtype = Dtype::f32;
  /// Tokens, ascending, at which a document starts; those of the halo are negative.
  std::vector<std::int64_t> starts = {};
  std::int64_t first = 0;
  std::int64_t count = 0;

  /// Number of rows of a halo.
  std::int64_t before() const { return taps - 1; }
  /// Elements of a token.
  std::int64_t row() const { return heads * width; }
  /// Weights of a channel.
  std::int64_t weights() const { return taps + (has_bias ? 1 : 0); }
  /// Channels that have weights of their own.
  std::int64_t channels() const { return row() / batch; }
  /// The same run, of which a call makes other rows.
  ConvShape rows(std::int64_t from, std::int64_t rows) const {
    ConvShape part = *this;
    part.first = from;
    part.count = rows;
    return part;
  }
  /// Cost of a call that reads or writes some bytes for each element.
  double flops() const { return 2 * elements() * static_cast<double>(taps); }
  double tensors(std::int64_t narrow, std::int64_t sums) const {
    return elements() * static_cast<double>(narrow * bytes_of(dtype) + sums * bytes_of(Dtype::f32));
  }

 private:
  double elements() const { return static_cast<double>(count * row()); }
};

/// What the convolution is computed from.
template <class A>
struct ConvInputs {
  In<A, Tensor> x{};     ///< The rows of the run.
  In<A, Tensor> halo{};  ///< The rows before it, or null for zeros.
  In<A, Tensor> w{};     ///< [channels, weights()]
  auto members() { return std::tie(x, halo, w); }
};

/// y of some rows.
struct Conv {
  static constexpr const char* name = "conv";
  using Parameters = ConvShape;
  template <class A>
  struct Operands {
    ConvInputs<A> in{};
    Out<A, Tensor> y{};  ///< [count, heads, width]
    auto reads() { return in.members(); }
    auto writes() { return std::tie(y); }
  };
  static double flops(const Parameters& p) { return p.flops(); }
  static double bytes(const Parameters& p) { return p.tensors(2, 0); }
  static void on_host(const Operands<OnHost>& x, const Parameters& p);
};

/// dz of some rows, from the gradients of y.
struct ConvActivationGradients {
  static constexpr const char* name = "conv_activation_gradients";
  using Parameters = ConvShape;
  template <class A>
  struct Operands {
    ConvInputs<A> in{};
    In<A, Tensor> dy{};  ///< [count, heads, width]
    Out<A, State> dz{};  ///< [count, heads, width]
    auto reads() { return std::tuple_cat(in.members(), std::tie(dy)); }
    auto writes() { return std::tie(dz); }
  };
  static double flops(const Parameters& p) { return p.flops(); }
  static double bytes(const Parameters& p) { return p.tensors(2, 1); }
  static void on_host(const Operands<OnHost>& x, const Parameters& p);
};

/// dx of some rows, from dz of the run and what other ranks made of these rows. Negative rows are
/// those of the halo; their dz is that of the first tokens alone.
struct ConvInputGradients {
  static constexpr const char* name = "conv_input_gradients";
  using Parameters = ConvShape;
  template <class A>
  struct Operands {
    In<A, State> dz{};     ///< [tokens of the run, heads, width]
    In<A, Tensor> w{};     ///< [channels, weights()]
    In<A, State> later{};  ///< [count, heads, width], or null for zeros.
    Out<A, Tensor> dx{};   ///< [count, heads, width], null for those of the halo.
    Out<A, State> back{};  ///< Those of the halo, which another rank adds to its own.
    auto reads() { return std::tie(dz, w, later); }
    auto writes() { return std::tie(dx, back); }
  };
  static double flops(const Parameters& p) { return p.flops(); }
  static double bytes(const Parameters& p) { return p.tensors(1, 1); }
  static void on_host(const Operands<OnHost>& x, const Parameters& p);
};

/// Adds dw of a run.
struct ConvWeightGradients {
  static constexpr const char* name = "conv_weight_gradients";
  using Parameters = ConvShape;
  template <class A>
  struct Operands {
    In<A, Tensor> x{};     ///< The rows of the run.
    In<A, Tensor> halo{};  ///< The rows before it, or null for zeros.
    In<A, State> dz{};     ///< [tokens of the run, heads, width]
    InOut<A, State> dw{};  ///< [channels, weights()]
    auto reads() { return std::tie(x, halo, dz, dw); }
    auto writes() { return std::tie(dw); }
  };
  static double flops(const Parameters& p) { return p.flops(); }
  static double bytes(const Parameters& p) { return p.tensors(1, 1); }
  static void on_host(const Operands<OnHost>& x, const Parameters& p);
};

}  // namespace baton
