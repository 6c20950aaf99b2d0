// SPDX-License-Identifier: Apache-2.0
// The contracts of Ring Attention's elementwise steps and of its softmax kernels. Those of its
// linear form are in left_product.hpp.
//
// A softmax block is attention of one rank's queries against one block of keys:
//
//   block:      out = softmax(s q k^T) v over visible keys,  lse = log of the sum of e^{s q k^T}
//               a query that sees no key of the block has out = 0 and lse = -inf
//   merge:      out_a -= sigmoid(lse_b - lse_a) (out_a - out_b)
//               lse_a -= log sigmoid(lse_a - lse_b)
//   delta:      delta = rowsum(d_o (.) out), once before the ring
//   gradients:  p = e^{s q k^T - lse}        dv += p^T d_o        dz = p (.) (d_o v^T - delta)
//               dq += s dz k                 dk += s dz^T q
//
// Positions ascend, so the keys of a block that a query sees follow one another: those from
// hidden() to before visible(). A query may see none behind one that sees some. Several heads of
// queries may share one of keys and values, whose gradients are then sums over these heads.
// Latent keys hold their values: v is the first d_v columns of k, and dv is added to those of dk.
// Cost: for each visible pair and head 2 (d_k + d_v) flop forward, 6 d_k + 4 d_v backward. Bytes
// count each input once and each result once, or twice where a result is added to.
// Source: Dao, "FlashAttention-2", 2023, algorithms 1 and 2; zhuzilin/ring-flash-attention,
// utils.py (the merge; gradients of keys and values circulate in f32).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "sp_methods/kernels/contracts.hpp"
#include "sp_methods/kernels/shape.hpp"

namespace baton {

/// An operand whose element type is the `dtype` of the parameters; f32 on the host.
struct TypedByParameters {
  template <class Narrow>
  using Element = std::conditional_t<std::is_same_v<Narrow, float>, float, void>;
};

/// Sets every element to `value`.
struct Fill {
  static constexpr const char* name = "fill";
  struct Parameters {
    std::int64_t count = 0;
    float value = 0;
  };
  template <class A>
  struct Operands {
    Out<A, State> into{};  ///< [count]
    auto reads() { return std::tie(); }
    auto writes() { return std::tie(into); }
  };
  static double flops(const Parameters&) { return 0; }
  static double bytes(const Parameters& p) { return 4.0 * static_cast<double>(p.count); }
  static void on_host(const Operands<OnHost>& x, const Parameters& p) {
    std::fill_n(x.into, p.count, p.value);
  }
};

/// into += from.
struct Add {
  static constexpr const char* name = "add";
  struct Parameters {
    std::int64_t count = 0;
    Dtype dtype = Dtype::f32;       ///< Type of `into`.
    Dtype from_dtype = Dtype::f32;  ///< Type of `from`.
  };
  template <class A>
  struct Operands {
    InOut<A, TypedByParameters> into{};  ///< [count]
    In<A, TypedByParameters> from{};     ///< [count]
    auto reads() { return std::tie(from, into); }
    auto writes() { return std::tie(into); }
  };
  static double flops(const Parameters& p) { return static_cast<double>(p.count); }
  static double bytes(const Parameters& p) {
    return static_cast<double>(p.count * (2 * bytes_of(p.dtype) + bytes_of(p.from_dtype)));
  }
  static void on_host(const Operands<OnHost>& x, const Parameters& p) {
    std::transform(x.into, x.into + p.count, x.from, x.into, std::plus<>());
  }
};

/// into = from, rounded to the type of `into`.
struct Narrow {
  static constexpr const char* name = "narrow";
  struct Parameters {
    std::int64_t count = 0;
    Dtype dtype = Dtype::bf16;  ///< Type of `into`.
  };
  template <class A>
  struct Operands {
    Out<A, Tensor> into{};  ///< [count]
    In<A, State> from{};    ///< [count]
    auto reads() { return std::tie(from); }
    auto writes() { return std::tie(into); }
  };
  static double flops(const Parameters&) { return 0; }
  static double bytes(const Parameters& p) { return static_cast<double>(p.count * (bytes_of(p.dtype) + 4)); }
  static void on_host(const Operands<OnHost>& x, const Parameters& p) {
    std::copy_n(x.from, p.count, x.into);
  }
};

/// The sizes of one rank's queries and one block of keys.
struct SoftmaxShape {
  std::int64_t q_tokens = 0;
  std::int64_t k_tokens = 0;
  std::int64_t heads = 1;
  std::int64_t d_k = 0;
  std::int64_t d_v = 0;
  Positions q_positions;
  Positions k_positions;
  Dtype dtype = Dtype::f32;   ///< Type of q, k, v and d_o; lse and delta are f32.
  std::int64_t kv_heads = 0;  ///< A divisor of `heads`, or 0 for as many; read it as key_heads().
  bool latent = false;        ///< v and dv are parts of k and dk (LayerShape), and null.
  SoftmaxBody body = SoftmaxBody::own;
  /// Type of SoftmaxBlock's `out`, MergeSoftmax's `block_out` and SoftmaxDelta's `out`.
  Dtype out_dtype = Dtype::f32;
  Mask mask;

  /// Number of heads of keys and values.
  std::int64_t key_heads() const { return kv_heads == 0 ? heads : kv_heads; }
  /// Number of query heads that share one head of keys and values.
  std::int64_t group_heads() const { return heads / key_heads(); }
  std::array<std::int64_t, 2> widths() const { return {d_k, d_v}; }
  /// Width of a head of v: d_v, or 0 if values are parts of the keys.
  std::int64_t value_width() const { return latent ? 0 : d_v; }
  /// The factor s = d_k^{-1/2} of the scores.
  float scale() const { return 1.0F / std::sqrt(static_cast<float>(d_k)); }
  /// Number of keys of the block before the first that local query i sees; visible(i) if it sees
  /// none.
  std::int64_t hidden(std::int64_t i) const {
    return mask.hides_first_keys() ? k_positions.visible(mask.lower(q_positions.at(i)) - 1, k_tokens) : 0;
  }
  /// Number of keys of the block up to the last that local query i sees.
  std::int64_t visible(std::int64_t i) const {
    return k_positions.visible(mask.upper(q_positions.at(i)), k_tokens);
  }
  /// Number of keys of the block from the first to the last that any query sees, where the mask
  /// hides first keys; else all of them.
  std::int64_t seen_keys() const {
    return mask.hides_first_keys() ? visible(q_tokens - 1) - hidden(0) : k_tokens;
  }
  /// Number of pairs (query, key) that the mask leaves in one head.
  double visible_pairs() const;
};

/// Queries, keys and values.
template <class A>
struct SoftmaxInputs {
  In<A, Tensor> q{};  ///< [q_tokens, heads, d_k]
  In<A, Tensor> k{};  ///< [k_tokens, key_heads, d_k]
  In<A, Tensor> v{};  ///< [k_tokens, key_heads, value_width]
  auto members() { return std::tie(q, k, v); }
};

/// Sets out and lse to the attention over one block of keys.
struct SoftmaxBlock {
  static constexpr const char* name = "softmax_block";
  using Parameters = SoftmaxShape;
  template <class A>
  struct Operands {
    SoftmaxInputs<A> in{};
    Out<A, TypedByParameters> out{};  ///< [q_tokens, heads, d_v]
    Out<A, State> lse{};              ///< [q_tokens, heads], natural logarithm
    auto reads() { return in.members(); }
    auto writes() { return std::tie(out, lse); }
  };
  static double flops(const SoftmaxShape& shape);
  static double bytes(const SoftmaxShape& shape);
  static void on_host(const Operands<OnHost>& x, const SoftmaxShape& shape);
};

/// Merges one block's result into out and lse, which start as 0 and -inf.
struct MergeSoftmax {
  static constexpr const char* name = "merge_softmax";
  using Parameters = SoftmaxShape;
  template <class A>
  struct Operands {
    InOut<A, State> out{};                 ///< [q_tokens, heads, d_v]
    InOut<A, State> lse{};                 ///< [q_tokens, heads]
    In<A, TypedByParameters> block_out{};  ///< [q_tokens, heads, d_v], from SoftmaxBlock
    In<A, State> block_lse{};              ///< [q_tokens, heads]
    auto reads() { return std::tie(block_out, block_lse, out, lse); }
    auto writes() { return std::tie(out, lse); }
  };
  static double flops(const SoftmaxShape& shape);
  static double bytes(const SoftmaxShape& shape);
  static void on_host(const Operands<OnHost>& x, const SoftmaxShape& shape);
};

/// Sets delta to rowsum(d_o (.) out), once before the ring.
struct SoftmaxDelta {
  static constexpr const char* name = "softmax_delta";
  using Parameters = SoftmaxShape;
  template <class A>
  struct Operands {
    In<A, Tensor> d_o{};             ///< [q_tokens, heads, d_v], the gradient of the output
    In<A, TypedByParameters> out{};  ///< [q_tokens, heads, d_v], over the whole sequence
    Out<A, State> delta{};           ///< [q_tokens, heads]
    auto reads() { return std::tie(d_o, out); }
    auto writes() { return std::tie(delta); }
  };
  static double flops(const SoftmaxShape& shape);
  static double bytes(const SoftmaxShape& shape);
  static void on_host(const Operands<OnHost>& x, const SoftmaxShape& shape);
};

/// The type of a gradient's memory, and whether a block sets it or adds to it.
struct GradientsInto {
  Dtype dtype = Dtype::f32;
  bool sets = false;  ///< True if gradients replace the memory's values; else they are added.

  /// Bytes that one element of the memory has read and written.
  std::int64_t bytes() const { return (sets ? 1 : 2) * bytes_of(dtype); }
};

/// The sizes of a block with the memory of its gradients: one kind for dq, one for dk and dv.
struct SoftmaxGradientsShape : SoftmaxShape {
  GradientsInto dq;
  GradientsInto keys;
};

/// Adds the gradients of one block to dq, dk and dv, or sets them.
struct SoftmaxBlockGradients {
  static constexpr const char* name = "softmax_block_gradients";
  using Parameters = SoftmaxGradientsShape;
  template <class A>
  struct Operands {
    SoftmaxInputs<A> in{};
    In<A, Tensor> d_o{};               ///< [q_tokens, heads, d_v], the gradient of the output
    In<A, State> lse{};                ///< [q_tokens, heads], merged over all blocks
    In<A, State> delta{};              ///< [q_tokens, heads], from SoftmaxDelta
    InOut<A, TypedByParameters> dq{};  ///< [q_tokens, heads, d_k]
    InOut<A, TypedByParameters> dk{};  ///< [k_tokens, key_heads, d_k]
    InOut<A, TypedByParameters> dv{};  ///< [k_tokens, key_heads, value_width]
    auto reads() { return std::tuple_cat(in.members(), std::tie(d_o, lse, delta, dq, dk, dv)); }
    auto writes() { return std::tie(dq, dk, dv); }
  };
  static double flops(const SoftmaxGradientsShape& shape);
  static double bytes(const SoftmaxGradientsShape& shape);
  static void on_host(const Operands<OnHost>& x, const SoftmaxGradientsShape& shape);
};

}  // namespace baton
