// SPDX-License-Identifier: Apache-2.0
// A whole model on one rank as one schedule: the blocks' forward passes, then their backward passes
// in reverse.
//
//   [x = embed(tokens)]
//   for each layer: [gather the next layer's weights]; forward
//   [norm, head, loss, and their gradients]
//   for each layer, the last first: [gather the weights of the layer before]; backward;
//                                   [reduce-scatter its gradients]
//   [one pass of AdamW over each layer's weights]
//
// What stands in brackets is asked for. A forward pass alone ends before the gradients, and with a
// head behind the loss. Blocks work in the same memory one after the other. Without
// shards every rank has the weights and the gradients of its own tokens, which nobody adds up.
// Sharded, a rank owns 1/P of each layer's weights; the gathered weights of two layers are there at
// a time, and those that are still there when the backward pass begins are not gathered again.
// Source of the sharding: "PyTorch FSDP", arXiv 2304.11277.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sp_methods/models/shape.hpp"
#include "sp_methods/models/whole_sequence.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton {

/// A model whose layers run under sequence-parallel methods.
struct Stack {
  ModelShape shape;
  /// The method of linear layers, or `whole`; null if there are none. It must keep contiguous
  /// tokens.
  const SpMethod* linear = nullptr;
  /// The method of softmax layers; null if there are none. It must keep contiguous tokens.
  const SpMethod* softmax = nullptr;
  /// The choices of every layer's method: mode, blocks, scan, groups.
  Layer layer;
  /// Number of tokens of a rank.
  std::int64_t tokens = 0;
  bool shards_weights = false;
  /// True for a model with embedding, last norm, head and loss, whose weights are not sharded.
  bool has_head = false;
  bool has_optimizer = false;
  /// False for a forward pass alone, as of a prefill.
  bool has_backward = true;

  Pass pass() const { return has_backward ? Pass::both : Pass::forward; }
  const SpMethod& method(Attention kind) const { return kind == Attention::linear ? *linear : *softmax; }
  /// A layer of a kind on one rank as its method takes it, with the choices of `layer`.
  Layer layer_of(Attention kind) const;
  /// True if every rank has the tensors of linear attention of all tokens.
  bool runs_whole() const { return linear == &whole_sequence(); }
  /// The method that the rows of the stack are named after: that of linear layers if there are
  /// some.
  const SpMethod& first_method() const { return linear != nullptr ? *linear : *softmax; }
  /// True if every rank's tokens are a sequence of their own.
  bool is_alone() const {
    return layer.mode == Mode::compute_only || first_method().sequence == Sequence::own;
  }
  /// True if a layer's tensors are there after a round. Without a backward pass layers of a kind
  /// use the same memory, so that only the last one's are.
  bool leaves_tensors(int layer) const { return has_backward || layer == last_of_kind(layer); }
  /// The number of the last layer whose kind is that of layer `layer`.
  int last_of_kind(int layer) const;
  /// Floating-point operations that one token of a sequence of `sequence` tokens needs in all
  /// passes.
  double flops_per_token(std::int64_t sequence) const {
    return shape.flops_per_token(sequence, has_head) / (has_backward ? 1 : 3);
  }
  /// Number of elements of a layer's buffer of weights, rounded up to shards of equal size.
  std::int64_t weight_count(LayerKind kind, int ranks) const;
};

/// The name of layer `layer`'s buffer of `what`: "weights_3".
std::string layer_buffer(const std::string& what, int layer);

/// True if each rank of a method has the tokens of a run of the sequence, its own share.
bool keeps_contiguous_tokens(const SpMethod& method);

/// The reason why a method of this stack cannot run on `ranks` ranks; empty if all can.
Refusal unsupported(const Stack& stack, int ranks);

/// The bytes that the busiest rank sends, made of the claims of the layers' method, or the hidden
/// states that each layer gathers, and, where
/// weights are sharded, of a share of a layer's weights for each of P - 1 messages: to gather each
/// layer twice but for the last two, and to scatter the gradients of each; or in a forward pass
/// alone to gather each once. Empty for layers of several kinds, whose busiest ranks may differ,
/// for layers of Mamba-2, whose blocks exchange rows beside their method, and where the method
/// claims nothing.
std::optional<std::int64_t> claimed_bytes(const Stack& stack, const Split& split);

/// One rank's schedule. Tensors and weights have the layer's dtype; gradients of weights, moments,
/// losses and numbers of tokens are f32.
/// Inputs: "x" [tokens, width] and "d_y" [tokens, width], or with a head "ids" and "targets"
/// [tokens], "table", "last_norm" and "head"; "weights_0" .. of each layer, or of this rank's shard
/// of it; with an optimiser "first_moment_0", "second_moment_0" .. as many.
/// Outputs: "y" and "d_x" [tokens, width], or with a head "losses" [tokens], "d_table",
/// "d_last_norm" and "d_head"; "d_weights_0" ..; with an optimiser "new_weights_0",
/// "new_first_moment_0", "new_second_moment_0" .. . A forward pass alone has no "d_y", and of the
/// outputs "y" or "losses" alone. What layer 3 keeps is called "q_3" and so on; without a backward
/// pass a layer's tensors have the number of the last layer of its kind.
Schedule build(const Stack& stack, int rank, int ranks, int ranks_per_node = 0);

}  // namespace baton
