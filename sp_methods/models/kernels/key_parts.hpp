// SPDX-License-Identifier: Apache-2.0
// The contracts of keys of multi-head latent attention, whose first channels all heads share.
//
//   join_keys            k_h = (s, o_h) of each head h
//   join_key_gradients   d_s = sum over h of the first channels of d_k_h;  d_o_h = the others
//
// Source: "DeepSeek-V2", arXiv 2405.04434, equations 17 and 18.
#pragma once

#include <cstdint>
#include <tuple>

#include "sp_methods/kernels/contracts.hpp"

namespace baton {

/// The sizes of keys in two parts.
struct KeyParts {
  std::int64_t tokens = 0;
  std::int64_t heads = 0;
  std::int64_t shared = 0;  ///< Channels of the part that all heads share.
  std::int64_t own = 0;     ///< Channels of the part of one head.
  Dtype dtype = Dtype::f32;

  std::int64_t width() const { return shared + own; }
  double elements() const { return static_cast<double>(tokens * heads * width()); }
  /// Bytes of the keys and of both parts.
  double bytes() const {
    return static_cast<double>(bytes_of(dtype)) *
           (elements() + static_cast<double>(tokens * (heads * own + shared)));
  }
};

/// Sets the key of each head to the part that all heads share, and its own part behind it.
struct JoinKeys {
  static constexpr const char* name = "join_keys";
  using Parameters = KeyParts;
  template <class A>
  struct Operands {
    In<A, Tensor> shared{};  ///< [tokens, shared]
    In<A, Tensor> own{};     ///< [tokens, heads, own]
    Out<A, Tensor> k{};      ///< [tokens, heads, shared + own]
    auto reads() { return std::tie(shared, own); }
    auto writes() { return std::tie(k); }
  };
  static double flops(const KeyParts&) { return 0; }
  static double bytes(const KeyParts& p) { return p.bytes(); }
  static void on_host(const Operands<OnHost>& x, const KeyParts& p);
};

/// Sets the gradients of both parts; that of the shared part is a sum over the heads.
struct JoinKeyGradients {
  static constexpr const char* name = "join_key_gradients";
  using Parameters = KeyParts;
  template <class A>
  struct Operands {
    In<A, Tensor> d_k{};        ///< [tokens, heads, shared + own]
    Out<A, Tensor> d_shared{};  ///< [tokens, shared]
    Out<A, Tensor> d_own{};     ///< [tokens, heads, own]
    auto reads() { return std::tie(d_k); }
    auto writes() { return std::tie(d_shared, d_own); }
  };
  static double flops(const KeyParts& p) { return static_cast<double>(p.tokens * p.heads * p.shared); }
  static double bytes(const KeyParts& p) { return p.bytes(); }
  static void on_host(const Operands<OnHost>& x, const KeyParts& p);
};

}  // namespace baton
