// SPDX-License-Identifier: Apache-2.0
// The sizes of a language model, what its layers are, and what a token costs.
//
//   x = x + W_o out(attention(q, k, v, ..)),   q, k, v, .. = projections of rms_norm(x)
//   x = x + W_down (silu(W_gate n) (.) W_up n),   n = rms_norm(x), which some layers leave out
//
// Linear layers are those of gated linear attention (arXiv 2312.06635, section 4.4 and figure 2),
// or under a delta rule those of Gated DeltaNet (arXiv 2412.06464) and Kimi Linear (arXiv
// 2510.26692), or those of MiniMax-01 (arXiv 2501.08313) or of Mamba-2 (arXiv 2405.21060). Softmax
// layers may have norms of q and k, rotary positions (arXiv 2104.09864) and an output gate, as
// those of Qwen3-Next have, or latent keys and values (arXiv 2405.04434), made heads of before the
// attention. RMSNorm and SwiGLU are those of LLaMA (arXiv 2302.13971).
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

/// A matrix [rows, columns] of one layer, which maps rows of `rows` numbers to rows of `columns`;
/// or numbers that take part in no product and count no floating-point operations.
struct Weight {
  enum class Kind {
    matrix,
    norm,  ///< Factors of a norm, about one.
    bias,  ///< Numbers of the size of one.
    taps,  ///< The weights [rows, columns] of a convolution, one row a channel.
  };

  std::string name;
  std::int64_t rows = 1;
  std::int64_t columns = 0;
  Kind kind = Kind::matrix;

  std::int64_t count() const { return rows * columns; }
};

/// What an MLP does between its matrices: silu(n W_gate) (.) n W_up, or relu(n W_up)^2 (arXiv
/// 2109.08668).
enum class MlpForm { swiglu, squared_relu };

/// What a layer of a model is.
struct LayerKind {
  Attention attention;
  bool has_mlp;  ///< True if an MLP follows the attention.

  LayerKind(Attention kind, bool mlp = true) : attention(kind), has_mlp(mlp) {}
  operator Attention() const { return attention; }
  bool operator==(const LayerKind&) const = default;
  bool operator==(Attention kind) const { return attention == kind; }
};

/// What linear attention's normed output is multiplied by: nothing, or one more projection behind
/// silu or behind the logistic function.
enum class OutputGate { none, silu, sigmoid };

/// What linear layers have beside their rule and gates. Lightning attention (arXiv 2401.04658) has
/// q, k and v behind silu, gates that are constants of head and layer, and one norm of all heads.
/// Mamba-2 has a convolution with biases, decay gates whose steps scale the values, a part of each
/// value beside the attention, and a norm behind the output gate, one for each head of q and k.
enum class LinearForm { plain, lightning, mamba };

/// The linear layers of a model.
struct LinearLayers {
  Rule rule = Rule::decay;
  LinearForm form = LinearForm::plain;
  std::int64_t heads = 4;
  std::int64_t qk_heads = 0;  ///< Heads of q and k, a divisor of `heads`; 0 for as many.
  std::int64_t d_k = 16;
  std::int64_t d_v = 32;
  /// One gate a channel, under a delta rule also one a head; or none.
  GateKind gate = GateKind::vector;
  /// The width between the two matrices of the gates' projection; 0 for one matrix.
  std::int64_t gate_rank = 16;
  /// The largest -g of a delta rule's gates, then -bound sigmoid(e^rate (z + bias)); 0 for none.
  float gate_bound = 0;
  /// Width of the convolution before q, k and v; 0 for none.
  std::int64_t conv = 0;
  OutputGate output_gate = OutputGate::silu;
  /// The width between the two matrices of the output gate's projection; 0 for one matrix.
  std::int64_t output_gate_rank = 0;

  bool operator==(const LinearLayers&) const = default;
};

/// The softmax layers of a model.
struct SoftmaxLayers {
  std::int64_t heads = 4;
  std::int64_t kv_heads = 4;  ///< Heads of keys and values, a divisor of `heads`.
  std::int64_t d_k = 16;
  std::int64_t d_v = 32;
  bool has_output_gate = false;  ///< True if the output is multiplied by sigmoid of a projection.
  bool has_head_norms = false;   ///< True if each head of q and of k is normed.
  /// Channels of each head of q and k, the first ones, that are rotated by the token's position.
  std::int64_t rotated = 0;
  /// Base of the rotation: channel pair i turns by base^(-2 i / rotated) a token.
  double rotation_base = 1e4;
  /// Channels between the two matrices of q's projection, which are normed; 0 for one matrix.
  std::int64_t q_rank = 0;
  /// Channels of the normed latent rows that keys and values are made from, as in multi-head latent
  /// attention (arXiv 2405.04434); 0 for none.
  std::int64_t kv_rank = 0;
  /// Channels of a key, the first ones, that all heads share and that no latent row makes.
  std::int64_t shared_k = 0;

  bool operator==(const SoftmaxLayers&) const = default;
};

/// The sizes of a model and the kinds of its layers.
struct ModelShape {
  std::string name = "tiny";
  std::int64_t width = 128;
  std::int64_t mlp = 256;
  std::int64_t vocabulary = 512;
  std::int64_t chunk = 64;
  LinearLayers linear;
  SoftmaxLayers softmax;
  MlpForm mlp_form = MlpForm::swiglu;
  std::vector<LayerKind> layers = {Attention::linear, Attention::linear};

  bool operator==(const ModelShape&) const = default;

  int count() const { return static_cast<int>(layers.size()); }
  /// The rule by which a layer's tokens change its state.
  Rule rule(Attention kind) const { return kind == Attention::linear ? linear.rule : Rule::decay; }
  /// One rank's share of a layer's attention.
  LayerShape share(Attention kind, std::int64_t tokens) const;
  bool has_gates(Attention kind) const { return kind == Attention::linear && linear.gate != GateKind::none; }
  /// True if layers have the form of lightning attention, whose gates no weight makes.
  bool is_lightning(Attention kind) const {
    return kind == Attention::linear && linear.form == LinearForm::lightning;
  }
  bool is_mamba(Attention kind) const {
    return kind == Attention::linear && linear.form == LinearForm::mamba;
  }
  /// True if keys and values are made from latent rows.
  bool is_latent(Attention kind) const { return kind == Attention::softmax && softmax.kv_rank > 0; }
  /// Numbers of the weight of linear layers' norm: a head's, or in layers of other forms all
  /// heads'.
  std::int64_t normed_width() const {
    return linear.form == LinearForm::plain ? linear.d_v : linear.heads * linear.d_v;
  }
  /// Runs of as many numbers of o that are normed one by one.
  std::int64_t norm_groups() const {
    return linear.form == LinearForm::mamba ? share(Attention::linear, 1).query_heads() : 1;
  }
  /// True if gates are those of a delta rule, -e^rate softplus(z + bias) unless they have a bound.
  bool has_decay_rates(Attention kind) const {
    return has_gates(kind) && (linear.rule == Rule::delta || is_mamba(kind));
  }
  /// The gate of a layer's output.
  OutputGate output_gate(Attention kind) const {
    if (kind == Attention::linear) return linear.output_gate;
    return softmax.has_output_gate ? OutputGate::sigmoid : OutputGate::none;
  }

  /// The weights of a layer, in the order in which they lie in its buffer.
  std::vector<Weight> weights(LayerKind kind) const;
  /// Number of elements of all weights of a layer.
  std::int64_t parameters(LayerKind kind) const;
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
  LayerWeights(const ModelShape& shape, LayerKind kind, const Slice& all) {
    std::int64_t at = 0;
    for (const Weight& weight : shape.weights(kind)) {
      places_[weight.name] = {weight, all.part(at, weight.count())};
      at += weight.count();
    }
  }

  /// The weight called `name`. Throws std::out_of_range if the layer has no such weight.
  const PlacedWeight& operator[](const std::string& name) const { return places_.at(name); }
  bool has(const std::string& name) const { return places_.contains(name); }

 private:
  std::map<std::string, PlacedWeight> places_;
};

}  // namespace baton
