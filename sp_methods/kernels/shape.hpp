// SPDX-License-Identifier: Apache-2.0
// The shape and the tensors of one rank's share of an attention layer, as all kernels take them.
//
//   S_t = Diag(e^{g_t}) S_{t-1} + k_t^T v_t        o_t = s q_t S_t        s = d_k^{-1/2}
//
// Tensors are row-major [tokens, heads, width]; one head's row of a token is contiguous.
// Source: "Gated Linear Attention Transformers with Hardware-Efficient Training", arXiv 2312.06635.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "sp_methods/kernels/contracts.hpp"
#include "sp_methods/kernels/positions.hpp"

namespace baton {

/// Decay of a layer: one a channel, one a head, or none (plain linear attention).
enum class GateKind { vector, scalar, none };

/// The log of the logistic function, which turns any number into a log gate.
template <class Number>
Number log_sigmoid(Number x) {
  return -std::log1p(std::exp(-x));
}

/// A run of a rank's tokens that are of one document.
struct PackedChunk {
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool starts = false;  ///< True if a document starts at the first token.
};

/// The sizes of one rank's share of a layer.
struct LayerShape {
  std::int64_t tokens = 0;  ///< Tokens of this rank.
  std::int64_t heads = 1;
  std::int64_t d_k = 0;
  std::int64_t d_v = 0;
  std::int64_t chunk = 64;  ///< Tokens of a chunk; the last chunk may be shorter.
  GateKind gate = GateKind::vector;
  std::int64_t kv_heads = 0;  ///< A divisor of `heads`, or 0 for as many; read it as key_heads().
  /// True if the value of a key is its first d_v channels, d_v <= d_k, as in multi-head latent
  /// attention (arXiv 2405.04434) with its projections in q and o. v is null then, and dk has the
  /// sum of both gradients.
  bool latent = false;
  /// Chunks of a share with packed documents, each of one document (cut_at_starts). Null if no
  /// document starts among these tokens.
  std::shared_ptr<const std::vector<PackedChunk>> packed = nullptr;
  /// Number of sequences that are cut in the same way. A token has the heads of all of them, those
  /// of the first sequence first; `heads` and `kv_heads` count them all.
  std::int64_t batch = 1;
  /// Width W of the causal convolution before q, k and v; 0 for none (conv.hpp).
  std::int64_t conv = 0;
  bool conv_bias = false;  ///< True if the convolution adds a number of each channel.
  /// Heads of q and k of linear attention, a divisor of `heads`, or 0 for as many; read it as
  /// query_heads(). Those of v, the gates and the states are `heads`.
  std::int64_t qk_heads = 0;

  /// Number of heads of keys and values. Query head h uses key head h / group_heads(), as in
  /// grouped-query attention (arXiv 2305.13245).
  std::int64_t key_heads() const { return kv_heads == 0 ? heads : kv_heads; }
  /// Number of query heads that share one head of keys and values.
  std::int64_t group_heads() const { return heads / key_heads(); }
  /// Number of heads of q. Head h of linear attention uses q and k of head
  /// h / (heads / query_heads()), as in Gated DeltaNet of Qwen3-Next.
  std::int64_t query_heads() const { return qk_heads == 0 ? heads : qk_heads; }
  /// Weights of a channel of the convolution, of which a bias is the last.
  std::int64_t conv_weights() const { return conv + (conv_bias ? 1 : 0); }
  /// Width of a head of v: d_v, or 0 if values are parts of the keys.
  std::int64_t value_width() const { return latent ? 0 : d_v; }
  /// Number of chunks of this rank, short ones included.
  std::int64_t chunks() const {
    return packed ? static_cast<std::int64_t>(packed->size()) : (tokens + chunk - 1) / chunk;
  }
  /// True if a packed document starts with chunk n, so that no state comes into the chunk.
  bool starts_document(std::int64_t n) const {
    return packed && (*packed)[static_cast<std::size_t>(n)].starts;
  }
  /// Width of one token's gate in one head: d_k, 1 or 0.
  std::int64_t gate_width() const {
    return gate == GateKind::vector ? d_k : gate == GateKind::scalar ? 1 : 0;
  }
  /// The factor s = d_k^{-1/2} of the scores.
  float scale() const { return 1.0F / std::sqrt(static_cast<float>(d_k)); }
  /// Sum over chunks of (tokens of the chunk)^2, for one head.
  double chunk_pairs() const {
    if (packed) {
      double pairs = 0;
      for (const PackedChunk& one : *packed)
        pairs += static_cast<double>(one.count) * static_cast<double>(one.count);
      return pairs;
    }
    const auto c = static_cast<double>(chunk);
    const auto rest = static_cast<double>(tokens % chunk);
    return static_cast<double>(tokens / chunk) * c * c + rest * rest;
  }
  /// tokens * heads, as a double for cost formulas.
  double token_rows() const { return static_cast<double>(tokens) * static_cast<double>(heads); }
  /// Elements of one state of all heads: heads * d_k * d_v.
  double state_elements() const { return static_cast<double>(heads * d_k * d_v); }
};

/// Cuts the chunks of a share whose first token is at position `first` at the ascending positions
/// `starts` of packed documents. An empty `starts` means no packed documents.
inline void cut_at_starts(LayerShape& share, const std::vector<std::int64_t>& starts, std::int64_t first) {
  share.packed = nullptr;
  if (starts.empty()) return;
  std::vector<PackedChunk> chunks;
  auto next = std::lower_bound(starts.begin(), starts.end(), first);
  for (std::int64_t at = 0; at < share.tokens;) {
    const bool is_start = next != starts.end() && *next == first + at;
    if (is_start) ++next;
    const std::int64_t to_start = next == starts.end() ? share.tokens : *next - first;
    const std::int64_t count = std::min({share.chunk, share.tokens - at, to_start - at});
    chunks.push_back({at, count, is_start});
    at += count;
  }
  share.packed = std::make_shared<const std::vector<PackedChunk>>(std::move(chunks));
}

/// The inputs q, k, v and g of a layer.
template <class A>
struct LayerInputs {
  In<A, Tensor> q{};  ///< [tokens, heads, d_k]
  In<A, Tensor> k{};  ///< [tokens, heads, d_k]
  In<A, Tensor> v{};  ///< [tokens, heads, d_v]
  In<A, Tensor> g{};  ///< Natural-log gates, <= 0: [tokens, heads, d_k], [tokens, heads], or null.
  auto members() { return std::tie(q, k, v, g); }
};
using GlaInputs = LayerInputs<OnHost>;

/// The gradients of a layer's inputs, shaped as the inputs; dg is the gradient of the natural-log
/// gate.
template <class A>
struct LayerGradients {
  Out<A, Tensor> dq{};
  Out<A, Tensor> dk{};
  Out<A, Tensor> dv{};
  Out<A, Tensor> dg{};  ///< Null without gates.
  auto members() { return std::tie(dq, dk, dv, dg); }
};
using GlaGradients = LayerGradients<OnHost>;

/// Heads and threads of a call. Pointers to tensors with tokens point to the whole tensor.
struct Work {
  std::int64_t first_head = 0;
  std::int64_t head_count = -1;  ///< -1 means every head from first_head on.
  int threads = 1;

  /// Number of heads that this call computes.
  std::int64_t heads(const LayerShape& shape) const {
    return head_count < 0 ? shape.heads - first_head : head_count;
  }
};

}  // namespace baton
