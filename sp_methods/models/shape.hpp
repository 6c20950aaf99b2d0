// SPDX-License-Identifier: Apache-2.0
// The sizes of a language model, what its layers are, and what a token costs.
//
//   x = x + W_o out(attention(q, k, v, g)),   q, k, v, gates = projections of rms_norm(x)
//   x = x + W_down (silu(W_gate n) (.) W_up n),   n = rms_norm(x)
//
// Softmax layers have no gates and no output norm. Positions are not encoded.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635, section 4.4 and figure 2;
// "LLaMA", arXiv 2302.13971 (RMSNorm, SwiGLU).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collectives/schedule/slice.hpp"
#include "sp_methods/kernels/shape.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton {

/// The factor of log gates: g = logsigmoid(z) / 16 (arXiv 2312.06635, section 4.4).
inline constexpr float gate_factor = 1.0F / 16;

/// Number that is added to a mean square before its root, so that a row of zeros has a norm.
inline constexpr float norm_epsilon = 1e-5F;

/// A matrix [rows, columns] of one layer, or a vector of `columns` numbers, whose `rows` is 1. It
/// maps rows of `rows` numbers to rows of `columns`.
struct Weight {
  std::string name;
  std::int64_t rows = 1;
  std::int64_t columns = 0;
  /// True for a vector, which takes part in no product and counts no floating-point operations.
  bool is_vector = false;

  std::int64_t count() const { return rows * columns; }
};

/// The sizes of a model and the kinds of its layers.
struct ModelShape {
  std::string name = "tiny";
  std::int64_t width = 128;
  std::int64_t mlp = 256;
  std::int64_t vocabulary = 512;
  std::int64_t heads = 4;
  std::int64_t d_k = 16;
  std::int64_t d_v = 32;
  std::int64_t chunk = 64;
  /// Number of heads of keys and values of softmax layers.
  std::int64_t kv_heads = 4;
  /// Gates of linear layers: one a channel, or none.
  GateKind gate = GateKind::vector;
  /// The width between the two matrices of the gates' projection.
  std::int64_t gate_rank = 16;
  /// True if linear layers scale their normed output by silu of one more projection.
  bool has_output_gate = true;
  /// The attention of each layer.
  std::vector<Attention> layers = {Attention::linear, Attention::linear};

  int count() const { return static_cast<int>(layers.size()); }

  /// One rank's share of a layer's attention.
  LayerShape share(Attention kind, std::int64_t tokens) const {
    const bool is_linear = kind == Attention::linear;
    return {tokens, heads, d_k, d_v, chunk, is_linear ? gate : GateKind::none, is_linear ? 0 : kv_heads};
  }
  std::int64_t key_heads(Attention kind) const { return kind == Attention::linear ? heads : kv_heads; }
  bool has_gates(Attention kind) const { return kind == Attention::linear && gate == GateKind::vector; }
  bool gates_output(Attention kind) const { return kind == Attention::linear && has_output_gate; }

  /// The weights of a layer, in the order in which they lie in its buffer.
  std::vector<Weight> weights(Attention kind) const;
  /// Number of elements of all weights of a layer.
  std::int64_t parameters(Attention kind) const;
  /// Number of elements of the weights of all layers, and with `has_head` of embedding, head and
  /// last norm.
  std::int64_t parameters(bool has_head) const;

  /// Floating-point operations that one token of a sequence of `sequence` tokens needs forward and
  /// backward: 6 for each weight of a matrix, and three times what attention needs forward.
  /// Recomputation does not count.
  double flops_per_token(std::int64_t sequence, bool has_head) const;
  /// The number of layers that compute softmax attention.
  int softmax_layers() const {
    return static_cast<int>(std::count(layers.begin(), layers.end(), Attention::softmax));
  }
};

/// A weight and the slice that holds it.
struct PlacedWeight {
  Weight weight;
  Slice slice;
};

/// The weights of a layer, which lie in a slice one after the other.
class LayerWeights {
 public:
  /// Places the weights in `all`, which has at least as many elements as they have.
  LayerWeights(const ModelShape& shape, Attention kind, const Slice& all) {
    std::int64_t at = 0;
    for (const Weight& weight : shape.weights(kind)) {
      places_[weight.name] = {weight, all.part(at, weight.count())};
      at += weight.count();
    }
  }

  /// The weight called `name`. Throws std::out_of_range if the layer has no such weight.
  const PlacedWeight& operator[](const std::string& name) const { return places_.at(name); }

 private:
  std::map<std::string, PlacedWeight> places_;
};

}  // namespace baton
