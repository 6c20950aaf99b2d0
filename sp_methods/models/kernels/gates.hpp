// SPDX-License-Identifier: Apache-2.0
// The contracts of a block's kernels around attention: log gates, the strength beta of a delta
// rule, the gate of an output, and rotary positions, with their gradients.
//
//   decay gates    g = -e^{rate} softplus(z + bias), a rate a head;
//                  with a bound, g = -bound sigmoid(e^{rate} (z + bias))
//   fixed gates    g = -factor 2^{-8 (h + 1) / H} of head h of H
//   logistic       y = sigmoid(x)
//   sigmoid gate   y = o (.) sigmoid(u)
//   rotate         (y_i, y_{i+n}) = (x_i, x_{i+n}) turned by p base^{-i/n}, i < n, 2 n = rotated
//
// Source: log gates of arXiv 2312.06635, section 4.4; decay gates of "Gated Delta Networks", arXiv
// 2412.06464, as Qwen3-Next has them, with bounds as GLM-5.3-Flash has them; slopes of arXiv
// 2108.12409; rotation of arXiv 2104.09864.
#pragma once

#include <cstdint>
#include <tuple>

#include "sp_methods/kernels/positions.hpp"
#include "sp_methods/models/kernels/block.hpp"

namespace baton {

struct LogGates {
  static constexpr const char* name = "log_gates";
  using Parameters = Rows;
  template <class A>
  struct Operands {
    In<A, Tensor> z{};     ///< [count, width]
    In<A, Tensor> bias{};  ///< [width]
    Out<A, Tensor> g{};    ///< [count, width]
    auto reads() { return std::tie(z, bias); }
    auto writes() { return std::tie(g); }
  };
  static double flops(const Rows& p) { return 5 * p.elements(); }
  static double bytes(const Rows& p) { return p.bytes(2); }
  static void on_host(const Operands<OnHost>& x, const Rows& p);
};

/// Sets the gradients of log gates from g alone. The slope is 1 - sigmoid(z + b) = 1 - e^{g /
/// factor}, so z is not kept.
struct LogGateGradients {
  static constexpr const char* name = "log_gate_gradients";
  using Parameters = Rows;
  template <class A>
  struct Operands {
    In<A, Tensor> g{};       ///< [count, width]
    In<A, Tensor> d_g{};     ///< [count, width]
    Out<A, Tensor> d_z{};    ///< [count, width]
    Out<A, State> d_bias{};  ///< [width]
    auto reads() { return std::tie(g, d_g); }
    auto writes() { return std::tie(d_z, d_bias); }
  };
  static double flops(const Rows& p) { return 5 * p.elements(); }
  static double bytes(const Rows& p) { return p.bytes(3); }
  static void on_host(const Operands<OnHost>& x, const Rows& p);
};

/// Parameters of decay gates: rows of `heads` heads of `group` gates each.
struct GateRows {
  std::int64_t count = 0;
  std::int64_t heads = 0;
  std::int64_t group = 1;
  Dtype dtype = Dtype::f32;
  float bound = 0;  ///< The largest -g; 0 if there is none.

  std::int64_t width() const { return heads * group; }
  /// The same rows without heads.
  Rows rows() const { return {.count = count, .width = width(), .dtype = dtype}; }
};

struct DecayGates {
  static constexpr const char* name = "decay_gates";
  using Parameters = GateRows;
  template <class A>
  struct Operands {
    In<A, Tensor> z{};     ///< [count, heads, group]
    In<A, Tensor> bias{};  ///< [heads, group]
    In<A, Tensor> rate{};  ///< [heads]
    Out<A, Tensor> g{};    ///< [count, heads, group]
    auto reads() { return std::tie(z, bias, rate); }
    auto writes() { return std::tie(g); }
  };
  static double flops(const GateRows& p) { return 5 * p.rows().elements(); }
  static double bytes(const GateRows& p) { return p.rows().bytes(2); }
  static void on_host(const Operands<OnHost>& x, const GateRows& p);
};

/// Sets the gradients of decay gates: d_z = -d_g e^{rate} sigmoid(z + bias), d_rate = sum d_g g.
/// With a bound and s = -g / bound: d_z = -d_g e^{rate} bound s (1 - s), and d_rate is the sum of
/// d_z (z + bias). In Mamba-2 (state_space.hpp) softplus(z + bias) has a gradient d_delta besides,
/// which adds d_delta sigmoid(z + bias) to d_z.
struct DecayGateGradients {
  static constexpr const char* name = "decay_gate_gradients";
  using Parameters = GateRows;
  template <class A>
  struct Operands {
    In<A, Tensor> z{};        ///< [count, heads, group]
    In<A, Tensor> bias{};     ///< [heads, group]
    In<A, Tensor> rate{};     ///< [heads]
    In<A, Tensor> d_g{};      ///< [count, heads, group]
    In<A, Tensor> d_delta{};  ///< [count, heads, group], or null
    Out<A, Tensor> d_z{};     ///< [count, heads, group]
    Out<A, State> d_bias{};   ///< [heads, group]
    Out<A, State> d_rate{};   ///< [heads]
    auto reads() { return std::tie(z, bias, rate, d_g, d_delta); }
    auto writes() { return std::tie(d_z, d_bias, d_rate); }
  };
  static double flops(const GateRows& p) { return 9 * p.rows().elements(); }
  static double bytes(const GateRows& p) { return p.rows().bytes(3); }
  static void on_host(const Operands<OnHost>& x, const GateRows& p);
};

/// Sets gates that are constants of a head: a row is that of one token.
struct FixedGates {
  static constexpr const char* name = "fixed_gates";
  using Parameters = Rows;
  template <class A>
  struct Operands {
    Out<A, Tensor> g{};  ///< [count, width]
    auto reads() { return std::tie(); }
    auto writes() { return std::tie(g); }
  };
  static double flops(const Rows&) { return 0; }
  static double bytes(const Rows& p) { return p.bytes(1); }
  static void on_host(const Operands<OnHost>& x, const Rows& p);
};

struct Logistic {
  static constexpr const char* name = "logistic";
  using Parameters = Rows;
  template <class A>
  struct Operands {
    In<A, Tensor> x{};   ///< [count, width]
    Out<A, Tensor> y{};  ///< [count, width]
    auto reads() { return std::tie(x); }
    auto writes() { return std::tie(y); }
  };
  static double flops(const Rows& p) { return 3 * p.elements(); }
  static double bytes(const Rows& p) { return p.bytes(2); }
  static void on_host(const Operands<OnHost>& x, const Rows& p);
};

/// Sets the gradient of x from y alone: d_x = d_y y (1 - y).
struct LogisticGradients {
  static constexpr const char* name = "logistic_gradients";
  using Parameters = Rows;
  template <class A>
  struct Operands {
    In<A, Tensor> y{};     ///< [count, width]
    In<A, Tensor> d_y{};   ///< [count, width]
    Out<A, Tensor> d_x{};  ///< [count, width]
    auto reads() { return std::tie(y, d_y); }
    auto writes() { return std::tie(d_x); }
  };
  static double flops(const Rows& p) { return 3 * p.elements(); }
  static double bytes(const Rows& p) { return p.bytes(3); }
  static void on_host(const Operands<OnHost>& x, const Rows& p);
};

/// Multiplies an output by the logistic function of its gate.
struct SigmoidGate {
  static constexpr const char* name = "sigmoid_gate";
  using Parameters = Rows;
  template <class A>
  struct Operands {
    In<A, Tensor> o{};     ///< [count, width]
    In<A, Tensor> gate{};  ///< [count, width]
    Out<A, Tensor> y{};    ///< [count, width]
    auto reads() { return std::tie(o, gate); }
    auto writes() { return std::tie(y); }
  };
  static double flops(const Rows& p) { return 4 * p.elements(); }
  static double bytes(const Rows& p) { return p.bytes(3); }
  static void on_host(const Operands<OnHost>& x, const Rows& p);
};

struct SigmoidGateGradients {
  static constexpr const char* name = "sigmoid_gate_gradients";
  using Parameters = Rows;
  template <class A>
  struct Operands {
    In<A, Tensor> o{};        ///< [count, width]
    In<A, Tensor> gate{};     ///< [count, width]
    In<A, Tensor> d_y{};      ///< [count, width]
    Out<A, Tensor> d_o{};     ///< [count, width]
    Out<A, Tensor> d_gate{};  ///< [count, width]
    auto reads() { return std::tie(o, gate, d_y); }
    auto writes() { return std::tie(d_o, d_gate); }
  };
  static double flops(const Rows& p) { return 8 * p.elements(); }
  static double bytes(const Rows& p) { return p.bytes(5); }
  static void on_host(const Operands<OnHost>& x, const Rows& p);
};

/// Parameters of a rotation by position.
struct Rotation {
  std::int64_t tokens = 0;
  std::int64_t heads = 0;
  std::int64_t width = 0;    ///< Channels of a head.
  std::int64_t rotated = 0;  ///< The first of them that turn, an even number.
  double base = 1e4;
  Positions positions = {};  ///< Of the tokens in the whole sequence.
  bool turns_back = false;   ///< True for the inverse, by which gradients go.
  Dtype dtype = Dtype::f32;

  double elements() const { return static_cast<double>(tokens * heads * width); }
  /// The angle of channel pair i of the token at `position`, in double precision: an f32 one of a
  /// distant token would be off by thousandths.
  double angle(std::int64_t position, std::int64_t i) const;
};

struct Rotate {
  static constexpr const char* name = "rotate";
  using Parameters = Rotation;
  template <class A>
  struct Operands {
    In<A, Tensor> x{};   ///< [tokens, heads, width]
    Out<A, Tensor> y{};  ///< [tokens, heads, width]
    auto reads() { return std::tie(x); }
    auto writes() { return std::tie(y); }
  };
  static double flops(const Rotation& p) {
    return 3 * p.elements() * static_cast<double>(p.rotated) / static_cast<double>(p.width);
  }
  static double bytes(const Rotation& p) { return 2 * static_cast<double>(bytes_of(p.dtype)) * p.elements(); }
  static void on_host(const Operands<OnHost>& x, const Rotation& p);
};

}  // namespace baton
