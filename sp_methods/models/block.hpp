// SPDX-License-Identifier: Apache-2.0
// One transformer block of one rank's tokens, forward and backward, as steps around the exchange
// and the attention of any method.
//
//   forward:   n = norm(x);  q, k, v, g, beta, u = projections of n
//              o = attention(q, k, v, g, beta), with a convolution before it if the layer has one
//              y = the norm of o, opened by u;  h = x + y W_o;  n = norm(h);  a, b = n W
//              out = h + swiglu(a, b) W, or h + relu(b)^2 W; some layers end with h
//   backward:  the same in reverse; d_x = d_h + what comes through the norm
//
// Softmax layers have no norm of o; that of lightning attention is of all heads together; that of
// Mamba-2, whose attention has steps around it (state_space.hpp), is behind its gate. What is done
// to q, k and v is in mixer_rows.hpp. A projection has one matrix, or two with few numbers
// between them.
// Tensors have the layer's dtype, as its weights do; gradients of weights are f32.
//
// Kept for the backward pass: x, q, k, v, g, beta, u, o, h, a, b, what is between two matrices,
// what is normed or made gates of, and what the method saves. Made again in it: norms and swiglu,
// by the kernels that made them. No product is made twice.
// A forward pass alone keeps nothing: all its tensors are working memory.
#pragma once

#include <memory>
#include <string>

#include "collectives/schedule/schedule.hpp"
#include "sp_methods/models/kernels/gates.hpp"
#include "sp_methods/models/mixer_rows.hpp"
#include "sp_methods/models/projections.hpp"
#include "sp_methods/models/shape.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton {

/// One layer of a model on one rank. Both passes are recorded into one schedule, the forward pass
/// first.
class Block {
 public:
  /// Makes the block of `layer`, one rank's share of layer `number` of the model, whose pass is set
  /// here. Names of kept tensors end in `label`. If `keeps` is false, no backward pass follows, and
  /// what would be kept is working memory. Everything else but `layer` must outlive the block.
  Block(Schedule& schedule, const ModelShape& shape, int number, const SpMethod& method, Layer layer,
        const std::string& label = {}, bool keeps = true);

  /// Sets `out` [tokens, width] from x [tokens, width], which must last until the backward pass.
  void record_forward(const LayerWeights& weights, const Slice& x, const Slice& out);
  /// Sets d_x [tokens, width] and the gradients of all weights from d_out [tokens, width].
  void record_backward(const LayerWeights& weights, const LayerWeights& gradients, const Slice& d_out,
                       const Slice& d_x);

 private:
  Rows rows(std::int64_t width) const { return {tokens(), width, norm_epsilon, layer_.dtype}; }
  const LayerShape& share() const { return layer_.share; }
  std::int64_t tokens() const { return memory_.tokens(); }
  Rows value_rows() const {
    const std::int64_t width = shape_.normed_width();
    return {tokens() * values() / width, width, norm_epsilon, layer_.dtype, shape_.norm_groups()};
  }
  std::int64_t values() const { return share().heads * share().d_v; }
  std::int64_t gates() const { return share().heads * share().gate_width(); }
  GateRows decay_rows() const {
    return {tokens(), share().heads, share().gate_width(), layer_.dtype, shape_.linear.gate_bound};
  }
  Rows log_gate_rows() const { return {tokens(), gates(), gate_factor, layer_.dtype}; }
  Slice mlp_gate() const { return shape_.mlp_form == MlpForm::swiglu ? memory_.kept("a") : Slice{}; }
  bool is_linear() const { return kind_ == Attention::linear; }
  bool has_rule(Rule rule) const { return is_linear() && layer_.rule == rule; }
  bool is_mamba() const { return shape_.is_mamba(kind_); }
  bool is_alone() const { return layer_.mode == Mode::compute_only || method_.sequence == Sequence::own; }
  Positions positions() const;
  Slice record_norm(const Slice& x, const PlacedWeight& weight);
  void record_projections(const LayerWeights& weights, const Slice& x);
  void record_gates(const LayerWeights& weights, const Slice& n);
  LayerTensors attention_tensors(const LayerWeights& weights) const;
  void record_attention(const LayerWeights& weights, const LayerTensors& x, const Slice& d_delta,
                        const Slice& d_skip);
  Slice record_output_norm(const LayerWeights& weights, const Slice& o);
  Slice record_gated();
  Slice record_output(const LayerWeights& weights);
  Slice record_mlp_product();
  Slice record_mlp_backward(const LayerWeights& weights, const LayerWeights& gradients, const Slice& d_out);
  Slice record_output_backward(const LayerWeights& weights, const LayerWeights& gradients, const Slice& d_h,
                               Slice& d_gate);
  Slice record_gated_backward(const LayerWeights& weights, const LayerWeights& gradients, const Slice& gated,
                              const Slice& d_y, Slice& d_gate);
  LayerTensors record_attention_backward(const LayerWeights& weights, const LayerWeights& gradients,
                                         const Slice& d_o, const Slice& d_delta);
  Slice record_gates_backward(const LayerWeights& weights, const LayerWeights& gradients, const Slice& d_g,
                              const Slice& d_delta);

  /// True if the mixer runs over the tokens of all ranks (whole_sequence.hpp).
  bool runs_whole_;
  Schedule& schedule_;
  const ModelShape& shape_;
  int number_;
  Attention kind_;
  const SpMethod& method_;
  Layer layer_;
  BlockMemory memory_;
  Projections products_;
  MixerRows rows_;
};

}  // namespace baton
