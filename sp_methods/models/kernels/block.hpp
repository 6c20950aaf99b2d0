// SPDX-License-Identifier: Apache-2.0
// The contracts of a block's products of matrices, which a library computes, of its norms and of
// the MLP's product.
//
//   matmul       out = c + a b
//   rms_norm     y = w (.) x / sqrt(mean(x^2) + epsilon)
//   gated_norm   y = rms_norm(o) (.) silu(u)
//   swiglu       m = silu(a) (.) b, or silu(a) without b, or relu(b)^2 without a
//
// Each of the others has a twin that makes gradients; gradients of weights are sums over the rows
// of this rank, in f32. Nothing but what these contracts name is kept from the forward pass: norms
// are made again.
#pragma once

#include <compare>
#include <cstdint>
#include <tuple>

#include "sp_methods/kernels/contracts.hpp"
#include "sp_methods/kernels/softmax.hpp"

namespace baton {

/// out [rows, columns] = c [rows, columns] + a [rows, depth] b [depth, columns], row-major.
struct Product {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  bool transposes_a = false;  ///< True if a lies as [depth, rows].
  bool transposes_b = false;  ///< True if b lies as [columns, depth].
  bool adds = false;          ///< True if c is added.
  Dtype dtype = Dtype::f32;   ///< Type of a and b.
  Dtype out = Dtype::f32;     ///< Type of c and out.

  auto operator<=>(const Product&) const = default;
};

struct Matmul {
  static constexpr const char* name = "matmul";
  using Parameters = Product;
  template <class A>
  struct Operands {
    In<A, Tensor> a{};
    In<A, Tensor> b{};
    In<A, TypedByParameters> c{};  ///< Addend of the product, which may be `out`; null means zero.
    Out<A, TypedByParameters> out{};
    auto reads() { return std::tie(a, b, c); }
    auto writes() { return std::tie(out); }
  };
  static double flops(const Product& p) {
    return 2.0 * static_cast<double>(p.rows) * static_cast<double>(p.columns) * static_cast<double>(p.depth);
  }
  static double bytes(const Product& p) {
    return static_cast<double>(bytes_of(p.dtype) * (p.rows * p.depth + p.depth * p.columns) +
                               bytes_of(p.out) * (p.adds ? 2 : 1) * p.rows * p.columns);
  }
  static void on_host(const Operands<OnHost>& x, const Product& p);
};

/// Parameters of a kernel on the rows of matrices [count, width].
struct Rows {
  std::int64_t count = 0;
  std::int64_t width = 0;
  /// Number that kernels of norms add to the mean square; factor of the gates in kernels of gates.
  float constant = 0;
  Dtype dtype = Dtype::f32;
  std::int64_t groups = 1;  ///< Parts of a row that RMSNorm normalises one by one.

  /// Width of such a part.
  std::int64_t part() const { return width / groups; }
  double elements() const { return static_cast<double>(count) * static_cast<double>(width); }
  /// Bytes of `matrices` matrices [count, width].
  double bytes(double matrices) const { return static_cast<double>(bytes_of(dtype)) * matrices * elements(); }
};

struct RmsNorm {
  static constexpr const char* name = "rms_norm";
  using Parameters = Rows;
  template <class A>
  struct Operands {
    In<A, Tensor> x{};       ///< [count, width]
    In<A, Tensor> weight{};  ///< [width]
    Out<A, Tensor> y{};      ///< [count, width]
    auto reads() { return std::tie(x, weight); }
    auto writes() { return std::tie(y); }
  };
  static double flops(const Rows& p) { return 4 * p.elements(); }
  static double bytes(const Rows& p) { return p.bytes(2); }
  static void on_host(const Operands<OnHost>& x, const Rows& p);
};

struct RmsNormGradients {
  static constexpr const char* name = "rms_norm_gradients";
  using Parameters = Rows;
  template <class A>
  struct Operands {
    In<A, Tensor> x{};           ///< [count, width]
    In<A, Tensor> weight{};      ///< [width]
    In<A, Tensor> d_y{};         ///< [count, width]
    In<A, Tensor> d_residual{};  ///< [count, width], added to d_x; null means zero.
    Out<A, Tensor> d_x{};        ///< [count, width]
    Out<A, State> d_weight{};    ///< [width]
    auto reads() { return std::tie(x, weight, d_y, d_residual); }
    auto writes() { return std::tie(d_x, d_weight); }
  };
  static double flops(const Rows& p) { return 10 * p.elements(); }
  static double bytes(const Rows& p) { return p.bytes(4); }
  static void on_host(const Operands<OnHost>& x, const Rows& p);
};

/// Normalises each head's output and multiplies it by silu of its gate. A row is one head of one
/// token.
struct GatedNorm {
  static constexpr const char* name = "gated_norm";
  using Parameters = Rows;
  template <class A>
  struct Operands {
    In<A, Tensor> o{};       ///< [count, width]
    In<A, Tensor> gate{};    ///< [count, width]
    In<A, Tensor> weight{};  ///< [width]
    Out<A, Tensor> y{};      ///< [count, width]
    auto reads() { return std::tie(o, gate, weight); }
    auto writes() { return std::tie(y); }
  };
  static double flops(const Rows& p) { return 9 * p.elements(); }
  static double bytes(const Rows& p) { return p.bytes(3); }
  static void on_host(const Operands<OnHost>& x, const Rows& p);
};

struct GatedNormGradients {
  static constexpr const char* name = "gated_norm_gradients";
  using Parameters = Rows;
  template <class A>
  struct Operands {
    In<A, Tensor> o{};         ///< [count, width]
    In<A, Tensor> gate{};      ///< [count, width]
    In<A, Tensor> weight{};    ///< [width]
    In<A, Tensor> d_y{};       ///< [count, width]
    Out<A, Tensor> d_o{};      ///< [count, width]
    Out<A, Tensor> d_gate{};   ///< [count, width]
    Out<A, State> d_weight{};  ///< [width]
    auto reads() { return std::tie(o, gate, weight, d_y); }
    auto writes() { return std::tie(d_o, d_gate, d_weight); }
  };
  static double flops(const Rows& p) { return 20 * p.elements(); }
  static double bytes(const Rows& p) { return p.bytes(5); }
  static void on_host(const Operands<OnHost>& x, const Rows& p);
};

struct SwiGlu {
  static constexpr const char* name = "swiglu";
  using Parameters = Rows;
  template <class A>
  struct Operands {
    In<A, Tensor> gate{};  ///< [count, width], or null
    In<A, Tensor> up{};    ///< [count, width], or null
    Out<A, Tensor> m{};    ///< [count, width]
    auto reads() { return std::tie(gate, up); }
    auto writes() { return std::tie(m); }
  };
  static double flops(const Rows& p) { return 5 * p.elements(); }
  static double bytes(const Rows& p) { return p.bytes(3); }
  static void on_host(const Operands<OnHost>& x, const Rows& p);
};

struct SwiGluGradients {
  static constexpr const char* name = "swiglu_gradients";
  using Parameters = Rows;
  template <class A>
  struct Operands {
    In<A, Tensor> gate{};     ///< [count, width], or null
    In<A, Tensor> up{};       ///< [count, width], or null
    In<A, Tensor> d_m{};      ///< [count, width]
    Out<A, Tensor> d_gate{};  ///< [count, width], or null as `gate` is
    Out<A, Tensor> d_up{};    ///< [count, width], or null as `up` is
    auto reads() { return std::tie(gate, up, d_m); }
    auto writes() { return std::tie(d_gate, d_up); }
  };
  static double flops(const Rows& p) { return 11 * p.elements(); }
  static double bytes(const Rows& p) { return p.bytes(5); }
  static void on_host(const Operands<OnHost>& x, const Rows& p);
};

}  // namespace baton
