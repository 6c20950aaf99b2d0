// SPDX-License-Identifier: Apache-2.0
// The contracts of the work at a model's ends: the embedding of tokens, the loss of the head's
// logits, and the optimiser's pass over the weights.
#pragma once

#include <cstdint>
#include <tuple>

#include "sp_methods/kernels/contracts.hpp"

namespace baton {

/// Parameters of kernels that read, or add to, the row of a table that each token names. Tokens are
/// numbers in f32, which holds them up to 2^24.
struct TokenRows {
  std::int64_t tokens = 0;
  std::int64_t vocabulary = 0;
  std::int64_t width = 0;
  Dtype dtype = Dtype::f32;

  double elements() const { return static_cast<double>(tokens) * static_cast<double>(width); }
};

/// x [tokens, width] = the rows of `table` that the tokens name.
struct Embed {
  static constexpr const char* name = "embed";
  using Parameters = TokenRows;
  template <class A>
  struct Operands {
    In<A, State> ids{};     ///< [tokens]
    In<A, Tensor> table{};  ///< [vocabulary, width]
    Out<A, Tensor> x{};     ///< [tokens, width]
    auto reads() { return std::tie(ids, table); }
    auto writes() { return std::tie(x); }
  };
  static double flops(const TokenRows&) { return 0; }
  static double bytes(const TokenRows& p) {
    return 2 * static_cast<double>(bytes_of(p.dtype)) * p.elements();
  }
  static void on_host(const Operands<OnHost>& x, const TokenRows& p);
};

/// Sets the gradient of the table, which is zero in rows that no token names.
struct EmbedGradients {
  static constexpr const char* name = "embed_gradients";
  using Parameters = TokenRows;
  template <class A>
  struct Operands {
    In<A, State> ids{};       ///< [tokens]
    In<A, Tensor> d_x{};      ///< [tokens, width]
    Out<A, State> d_table{};  ///< [vocabulary, width]
    auto reads() { return std::tie(ids, d_x); }
    auto writes() { return std::tie(d_table); }
  };
  static double flops(const TokenRows& p) { return p.elements(); }
  static double bytes(const TokenRows& p) {
    return (static_cast<double>(bytes_of(p.dtype)) + 4) * p.elements() +
           4 * static_cast<double>(p.vocabulary) * static_cast<double>(p.width);
  }
  static void on_host(const Operands<OnHost>& x, const TokenRows& p);
};

/// Sets the loss of each token, -log softmax(logits)[target]. Overwrites the logits by the gradient
/// of the mean loss of `all_tokens` tokens.
struct CrossEntropy {
  static constexpr const char* name = "cross_entropy";
  struct Parameters {
    std::int64_t tokens = 0;
    std::int64_t vocabulary = 0;
    std::int64_t all_tokens = 0;
    Dtype dtype = Dtype::f32;
  };
  template <class A>
  struct Operands {
    In<A, State> targets{};     ///< [tokens]
    InOut<A, Tensor> logits{};  ///< [tokens, vocabulary]
    Out<A, State> losses{};     ///< [tokens]
    auto reads() { return std::tie(targets, logits); }
    auto writes() { return std::tie(logits, losses); }
  };
  static double flops(const Parameters& p) {
    return 5 * static_cast<double>(p.tokens) * static_cast<double>(p.vocabulary);
  }
  static double bytes(const Parameters& p) {
    return 2.0 * static_cast<double>(bytes_of(p.dtype)) * static_cast<double>(p.tokens) *
           static_cast<double>(p.vocabulary);
  }
  static void on_host(const Operands<OnHost>& x, const Parameters& p);
};

/// The first step of AdamW (arXiv 1711.05101, algorithm 2) from moments m and v. All rounds have
/// the same inputs, so the new values have memory of their own.
struct AdamW {
  static constexpr const char* name = "adamw";
  struct Parameters {
    std::int64_t count = 0;
    float rate = 1e-3F, beta_1 = 0.9F, beta_2 = 0.95F, epsilon = 1e-8F, decay = 0.1F;
    Dtype dtype = Dtype::f32;
  };
  template <class A>
  struct Operands {
    In<A, Tensor> weights{};             ///< [count]
    In<A, State> gradients{}, m{}, v{};  ///< [count]
    Out<A, Tensor> new_weights{};        ///< [count]
    Out<A, State> new_m{}, new_v{};      ///< [count]
    auto reads() { return std::tie(weights, gradients, m, v); }
    auto writes() { return std::tie(new_weights, new_m, new_v); }
  };
  static double flops(const Parameters& p) { return 15 * static_cast<double>(p.count); }
  static double bytes(const Parameters& p) {
    return static_cast<double>((20 + 2 * bytes_of(p.dtype)) * p.count);
  }
  static void on_host(const Operands<OnHost>& x, const Parameters& p);
};

}  // namespace baton
