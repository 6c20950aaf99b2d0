// SPDX-License-Identifier: Apache-2.0
// One transformer block of one rank's tokens, forward and backward, as steps around the exchange
// and the attention of any method.
//
//   forward:   n = norm(x);  q, k, v, t, u = n W;  g = log_gates(t W);  o = attention(q, k, v, g)
//              y = gated_norm(o, u);  h = x + y W_o;  n = norm(h);  a, b = n W
//              out = h + swiglu(a, b) W
//   backward:  the same in reverse; d_x = d_h + what comes through the norm
//
// Tensors have the layer's dtype, as its weights do; gradients of weights are f32.
//
// A forward pass alone keeps nothing: all its tensors are working memory.
// Kept for the backward pass: x, q, k, v, t, g, u, o, h, a, b and what the method saves. Made again
// in it: norms and swiglu, by the kernels that made them. No product is made twice, and z = t W is
// not needed again (LogGateGradients).
#pragma once

#include <map>
#include <memory>
#include <string>

#include "collectives/schedule/schedule.hpp"
#include "sp_methods/models/kernels/block.hpp"
#include "sp_methods/models/shape.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton {

/// One layer of a model on one rank. Both passes are recorded into one schedule, the forward pass
/// first. Working memory comes from the schedule's `scratch`, so that the blocks of a stack can
/// share it; what is kept does not.
class Block {
 public:
  /// Makes the block. `layer` has the method's choices, mode, blocks and scan, and the tensors'
  /// dtype; its share and its pass are set here. Names of kept tensors end in `label`. If `keeps`
  /// is false, no backward pass follows, and what would be kept is working memory. Everything else
  /// but `layer` must outlive the block.
  Block(Schedule& schedule, const ModelShape& shape, Attention kind, const SpMethod& method, Layer layer,
        std::int64_t tokens, const std::string& label = {}, bool keeps = true);

  /// Sets `out` [tokens, width] from x [tokens, width], which must last until the backward pass.
  void record_forward(const LayerWeights& weights, const Slice& x, const Slice& out);
  /// Sets d_x [tokens, width] and the gradients of all weights from d_out [tokens, width].
  void record_backward(const LayerWeights& weights, const LayerWeights& gradients, const Slice& d_out,
                       const Slice& d_x);

 private:
  Slice working(const std::string& name, std::int64_t row) {
    return schedule_.scratch(name, tokens_ * row, layer_.dtype);
  }
  Rows rows(std::int64_t width) const { return {tokens_, width, norm_epsilon, layer_.dtype}; }
  Rows head_rows() const { return {tokens_ * shape_.heads, shape_.d_v, norm_epsilon, layer_.dtype}; }
  Rows gate_rows() const { return {tokens_, shape_.heads * shape_.d_k, gate_factor, layer_.dtype}; }
  Slice kept(const std::string& name, std::int64_t row);
  const Slice& kept(const std::string& name) const { return kept_.at(name); }

  /// Sets into [tokens, columns] to c + x W; an empty c is left out.
  void project(const Slice& into, const Slice& x, const PlacedWeight& weight, const Slice& c = {});
  /// Sets into [tokens, rows] to c + d_y W^T; an empty c is left out.
  void project_back(const Slice& into, const Slice& d_y, const PlacedWeight& weight, const Slice& c = {});
  /// Sets the gradient of a weight to x^T d_y, summed over this rank's tokens.
  void record_gradient(const PlacedWeight& gradient, const Slice& x, const Slice& d_y);

  Slice record_norm(const Slice& x, const PlacedWeight& weight);
  Slice record_output(const LayerWeights& weights);
  Slice record_mlp_product();
  void record_projections(const LayerWeights& weights, const Slice& x);
  Slice record_mlp_backward(const LayerWeights& weights, const LayerWeights& gradients, const Slice& d_out);
  LayerTensors record_attention_backward(const LayerWeights& weights, const LayerWeights& gradients,
                                         const Slice& d_h, Slice& d_gate);
  Slice record_gates_backward(const LayerWeights& weights, const LayerWeights& gradients, const Slice& d_g);

  /// True if the mixer runs over the tokens of all ranks (whole_sequence.hpp).
  bool runs_whole_;
  Schedule& schedule_;
  const ModelShape& shape_;
  Attention kind_;
  const SpMethod& method_;
  Layer layer_;
  std::int64_t tokens_;  // of the rows that are worked on: this rank's, or those of all ranks
  std::string label_;
  bool keeps_;
  std::map<std::string, Slice> kept_;
};

}  // namespace baton
