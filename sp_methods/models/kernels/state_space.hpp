// SPDX-License-Identifier: Apache-2.0
// The contracts of Mamba-2 around its recurrence, a gated linear attention whose values are rows x
// times the step delta of their token and head:
//
//   scale_heads      v = factor delta x, delta = softplus(z + bias);  or o = o + D x
//   step_gradients   d_delta = factor sum d_v x;  d_x = factor delta d_v + D d_o;  d_D = sum d_o x
//
// The gradient of z is d_delta sigmoid(z + bias) and what comes through the gates, which are decay
// gates of the same z (gates.hpp). Methods scale q by d_k^{-1/2} and the model does not, so the
// factor of values is d_k^{1/2}.
// Source: "Transformers are SSMs", arXiv 2405.21060, section 7.
#pragma once

#include <cstdint>
#include <tuple>

#include "sp_methods/kernels/contracts.hpp"

namespace baton {

/// The sizes of rows x [tokens, heads, width].
struct StepRows {
  std::int64_t tokens = 0;
  std::int64_t heads = 0;
  std::int64_t width = 0;
  float factor = 1;
  bool adds = false;  ///< True if scaled rows are added to others.
  Dtype dtype = Dtype::f32;

  double elements() const { return static_cast<double>(tokens * heads * width); }
  /// Bytes of `tensors` tensors of the size of x.
  double bytes(double tensors) const { return static_cast<double>(bytes_of(dtype)) * tensors * elements(); }
};

/// y = c + factor softplus(z + number) x, or without z y = c + factor number x.
struct ScaleHeads {
  static constexpr const char* name = "scale_heads";
  using Parameters = StepRows;
  template <class A>
  struct Operands {
    In<A, Tensor> x{};       ///< [tokens, heads, width]
    In<A, Tensor> z{};       ///< [tokens, heads], or null
    In<A, Tensor> number{};  ///< [heads]
    In<A, Tensor> c{};       ///< [tokens, heads, width], which may be `y`; null means zero.
    Out<A, Tensor> y{};      ///< [tokens, heads, width]
    auto reads() { return std::tie(x, z, number, c); }
    auto writes() { return std::tie(y); }
  };
  static double flops(const StepRows& p) { return (p.adds ? 2 : 1) * p.elements(); }
  static double bytes(const StepRows& p) { return p.bytes(p.adds ? 3 : 2); }
  static void on_host(const Operands<OnHost>& x, const StepRows& p);
};

struct StepGradients {
  static constexpr const char* name = "step_gradients";
  using Parameters = StepRows;
  template <class A>
  struct Operands {
    In<A, Tensor> x{};         ///< [tokens, heads, width]
    In<A, Tensor> z{};         ///< [tokens, heads]
    In<A, Tensor> bias{};      ///< [heads]
    In<A, Tensor> skip{};      ///< D [heads]
    In<A, Tensor> d_v{};       ///< [tokens, heads, width]
    In<A, Tensor> d_o{};       ///< [tokens, heads, width], behind the skip
    Out<A, Tensor> d_x{};      ///< [tokens, heads, width]
    Out<A, Tensor> d_delta{};  ///< [tokens, heads]
    Out<A, State> d_skip{};    ///< [heads]
    auto reads() { return std::tie(x, z, bias, skip, d_v, d_o); }
    auto writes() { return std::tie(d_x, d_delta, d_skip); }
  };
  static double flops(const StepRows& p) { return 7 * p.elements(); }
  static double bytes(const StepRows& p) { return p.bytes(6); }
  static void on_host(const Operands<OnHost>& x, const StepRows& p);
};

}  // namespace baton
