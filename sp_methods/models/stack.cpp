// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/models/stack.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "collectives/collective.hpp"
#include "sp_methods/models/block.hpp"
#include "sp_methods/models/kernels/block.hpp"
#include "sp_methods/models/kernels/embedding_loss_adamw.hpp"

namespace baton {
namespace {

constexpr const char* gathering = "ring_all_gather";
constexpr const char* scattering = "ring_reduce_scatter";

/// Records one rank's schedule of a stack.
class Recorder {
 public:
  Recorder(Schedule& schedule, const Stack& stack) : s_(schedule), stack_(stack) {
    for (int layer = 0; layer < count(); ++layer) {
      const std::int64_t shard = weight_count(layer) / (stack.shards_weights ? s_.ranks() : 1);
      weights_.push_back(s_.input(layer_buffer("weights", layer), shard, dtype()));
      if (stack.has_backward) gradients_.push_back(s_.output(layer_buffer("d_weights", layer), shard));
      const int number = stack.has_backward ? layer : stack.last_of_kind(layer);
      blocks_.push_back(std::make_unique<Block>(s_, stack.shape, layer, stack.method(kind(layer)),
                                                stack.layer_of(kind(layer)), layer_buffer("", number),
                                                stack.has_backward));
    }
  }

  void record() {
    Slice x = first_hidden();
    for (int layer = 0; layer < count(); ++layer) x = record_forward(layer, x);
    if (!stack_.has_backward) {
      if (stack_.has_head) record_loss(x);
      return;
    }
    Slice d_y = stack_.has_head ? record_head(x) : s_.input("d_y", hidden_count(), dtype());
    for (int layer = count() - 1; layer >= 0; --layer) d_y = record_backward(layer, d_y);
    if (stack_.has_head) record_embedding_backward(d_y);
    for (int layer = 0; stack_.has_optimizer && layer < count(); ++layer) record_optimizer(layer);
  }

 private:
  int count() const { return stack_.shape.count(); }
  LayerKind kind(int layer) const { return stack_.shape.layers[layer]; }
  std::int64_t weight_count(int layer) const { return stack_.weight_count(kind(layer), s_.ranks()); }
  std::int64_t hidden_count() const { return stack_.tokens * stack_.shape.width; }
  Dtype dtype() const { return stack_.layer.dtype; }
  TokenRows token_rows() const {
    return {stack_.tokens, stack_.shape.vocabulary, stack_.shape.width, dtype()};
  }
  Rows hidden_rows() const { return {stack_.tokens, stack_.shape.width, norm_epsilon, dtype()}; }
  Slice hidden(const std::string& name) { return s_.scratch(name, hidden_count(), dtype()); }
  /// Sets the types of a product: that of `a` for its operands, that of `out` for its result.
  static Product product(Product p, const Slice& a, const Slice& out) {
    p.dtype = a.dtype;
    p.out = out.dtype;
    return p;
  }

  /// The operands between the last layer and the loss.
  struct Ends {
    Slice norm, head, normed, logits;
  };

  Slice first_hidden();
  LayerWeights whole_weights(int layer, int next);
  void gather(int layer);
  Slice record_forward(int layer, const Slice& x);
  Slice record_backward(int layer, const Slice& d_out);
  Ends record_loss(const Slice& y);
  Slice record_head(const Slice& y);
  void record_embedding_backward(const Slice& d_x);
  void record_optimizer(int layer);

  Schedule& s_;
  const Stack& stack_;
  ScratchPool pool_;
  // Sums on their way of two layers have memory of their own: a message must not wait for one of
  // the layer before, which may be in the same group (docs/decisions/0001-grouping-rule.md).
  std::array<ScratchPool, 2> sums_;
  std::vector<Slice> weights_, gradients_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::array<std::pair<int, Slice>, 2> gathered_{
      {{-1, {}}, {-1, {}}}};  // layers by parity, with their weights
  Slice ids_;
};

Slice Recorder::first_hidden() {
  if (!stack_.has_head) return s_.input("x", hidden_count(), dtype());
  ids_ = s_.input("ids", stack_.tokens);
  const Slice table = s_.input("table", stack_.shape.vocabulary * stack_.shape.width, dtype());
  const Slice x = hidden("embedded");
  baton::record<Embed>(s_, token_rows(), {ids_, table, x});
  return x;
}

/// Gathers the weights of `layer` unless they are there, into the memory of the layer two before or
/// two behind.
void Recorder::gather(int layer) {
  auto& [held, memory] = gathered_[layer % 2];
  if (held == layer) return;
  if (memory.count != weight_count(layer))
    memory = s_.scratch(layer_buffer("gathered", layer % 2), weight_count(layer), dtype());
  held = layer;
  // In place, so that a send waits for the memory as the receive beside it does: otherwise it may
  // join an earlier group than that receive (docs/decisions/0001-grouping-rule.md).
  const Slice own = memory.block(s_.rank(), s_.ranks(), weights_[layer].count);
  s_.copy(own, weights_[layer]);
  embed(s_, gathering, {{{}, own, own.count}, memory});
}

/// The whole weights of `layer`. The weights of layer `next` are on their way when this layer's
/// work begins.
LayerWeights Recorder::whole_weights(int layer, int next) {
  if (!stack_.shards_weights) return {stack_.shape, kind(layer), weights_[layer]};
  gather(layer);
  if (next >= 0 && next < count()) gather(next);
  return {stack_.shape, kind(layer), gathered_[layer % 2].second};
}

Slice Recorder::record_forward(int layer, const Slice& x) {
  const LayerWeights weights = whole_weights(layer, layer + 1);
  const bool is_output = layer + 1 == count() && !stack_.has_head;
  const Slice output = is_output             ? s_.output("y", hidden_count(), true, dtype())
                       : stack_.has_backward ? hidden(layer_buffer("hidden", layer))
                                             : Slice{};
  const Pooled pooled(s_, pool_);
  // Where no backward pass needs the inputs of all layers, two take turns.
  const Slice out = output.empty() ? hidden(layer_buffer("hidden", layer % 2)) : output;
  blocks_[layer]->record_forward(weights, x, out);
  return out;
}

Slice Recorder::record_backward(int layer, const Slice& d_out) {
  const LayerWeights weights = whole_weights(layer, layer - 1);
  const bool is_output = layer == 0 && !stack_.has_head;
  const Slice output = is_output ? s_.output("d_x", hidden_count(), true, dtype()) : Slice{};
  const Pooled pooled(s_, pool_);
  // Two take turns: that of this layer is read while that of the one before is written.
  const Slice d_x = is_output ? output : hidden(layer_buffer("d_hidden", layer % 2));
  const Slice all = stack_.shards_weights
                        ? s_.scratch(layer_buffer("whole_gradients", layer % 2), weight_count(layer))
                        : gradients_[layer];
  blocks_[layer]->record_backward(weights, {stack_.shape, kind(layer), all}, d_out, d_x);
  const Pooled sums(s_, sums_[layer % 2]);
  if (stack_.shards_weights) embed(s_, scattering, {{{}, all, all.count}, gradients_[layer]});
  return d_x;
}

/// Records norm, head and loss. The kernel of the loss leaves the gradients of the logits in their
/// place.
Recorder::Ends Recorder::record_loss(const Slice& y) {
  const std::int64_t tokens = stack_.tokens, vocabulary = stack_.shape.vocabulary, width = stack_.shape.width;
  const Slice weight = s_.input("last_norm", width, dtype()),
              head = s_.input("head", width * vocabulary, dtype());
  const Slice targets = s_.input("targets", tokens), losses = s_.output("losses", tokens);
  const Slice n = hidden("last_normed"), logits = s_.scratch("logits", tokens * vocabulary, dtype());
  baton::record<RmsNorm>(s_, hidden_rows(), {y, weight, n});
  baton::record<Matmul>(s_, product({.rows = tokens, .columns = vocabulary, .depth = width}, n, logits),
                        {.a = n, .b = head, .out = logits});
  baton::record<CrossEntropy>(s_, {tokens, vocabulary, tokens * s_.ranks(), dtype()},
                              {targets, logits, losses});
  return {weight, head, n, logits};
}

/// Records norm, head, loss and their gradients, and returns that of the last layer's output.
Slice Recorder::record_head(const Slice& y) {
  const std::int64_t tokens = stack_.tokens, vocabulary = stack_.shape.vocabulary, width = stack_.shape.width;
  const auto [weight, head, n, logits] = record_loss(y);
  const Slice d_weight = s_.output("d_last_norm", width), d_head = s_.output("d_head", width * vocabulary);
  baton::record<Matmul>(
      s_, product({.rows = width, .columns = vocabulary, .depth = tokens, .transposes_a = true}, n, d_head),
      {.a = n, .b = logits, .out = d_head});
  const Slice d_n = hidden("d_last_normed"), d_y = hidden("d_last");
  baton::record<Matmul>(
      s_, product({.rows = tokens, .columns = width, .depth = vocabulary, .transposes_b = true}, logits, d_n),
      {.a = logits, .b = head, .out = d_n});
  baton::record<RmsNormGradients>(s_, hidden_rows(), {y, weight, d_n, {}, d_y, d_weight});
  return d_y;
}

void Recorder::record_embedding_backward(const Slice& d_x) {
  const Slice d_table = s_.output("d_table", stack_.shape.vocabulary * stack_.shape.width);
  baton::record<EmbedGradients>(s_, token_rows(), {ids_, d_x, d_table});
}

void Recorder::record_optimizer(int layer) {
  const std::int64_t own = weights_[layer].count;
  const auto input = [&](const char* name) { return s_.input(layer_buffer(name, layer), own); };
  const auto output = [&](const char* name, Dtype dtype = Dtype::f32) {
    return s_.output(layer_buffer(name, layer), own, true, dtype);
  };
  const Slice m = input("first_moment"), v = input("second_moment"),
              new_weights = output("new_weights", dtype()), new_m = output("new_first_moment");
  baton::record<AdamW>(
      s_, {.count = own, .dtype = dtype()},
      {weights_[layer], gradients_[layer], m, v, new_weights, new_m, output("new_second_moment")});
}

}  // namespace

std::string layer_buffer(const std::string& what, int layer) { return what + "_" + std::to_string(layer); }

Layer Stack::layer_of(Attention kind) const {
  Layer one = layer;
  one.share = shape.share(kind, tokens);
  one.rule = shape.rule(kind);
  if (shape.is_mamba(kind)) one.share.conv = 0;  // the block has it, and the method none
  if (kind == Attention::linear) one.kernels.softmax = SoftmaxBody::own;  // of which it has no other
  return one;
}

std::int64_t Stack::weight_count(LayerKind kind, int ranks) const {
  const std::int64_t count = shape.parameters(kind);
  return shards_weights ? (count + ranks - 1) / ranks * ranks : count;
}

int Stack::last_of_kind(int layer) const {
  const auto last = std::find(shape.layers.rbegin(), shape.layers.rend(), shape.layers[layer]);
  return static_cast<int>(shape.layers.rend() - last) - 1;
}

bool keeps_contiguous_tokens(const SpMethod& method) {
  return method.sequence != Sequence::whole && method.layout == Layout::contiguous && !method.positions;
}

Refusal unsupported(const Stack& stack, int ranks) {
  for (const Attention kind : stack.shape.layers) {
    Layer layer = stack.layer_of(kind);
    const SpMethod& method = stack.method(kind);
    if (!keeps_contiguous_tokens(method))
      return method.name + " does not keep the contiguous tokens of a rank";
    if (kind == Attention::softmax && method.kept && stack.has_backward)
      return method.name + " keeps the output of other heads or tokens, which no stack does yet";
    const bool adds_up = stack.shards_weights || ranks == 1 || !stack.has_backward;
    if (layer.share.conv > 0 && method.kept && !adds_up)
      return method.name +
             " makes gradients of a convolution's weights for its own heads, and only --fsdp adds them up";
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      if (pass == Pass::backward && !stack.has_backward) continue;
      layer.pass = pass;
      if (!method.unsupported) continue;
      if (Refusal refusal = method.unsupported(layer, ranks)) return refusal;
    }
  }
  return {};
}

std::optional<std::int64_t> claimed_bytes(const Stack& stack, const Split& split) {
  const LayerKind kind = stack.shape.layers.front();
  const int layers = stack.shape.count();
  const auto is_other = [&](const LayerKind& one) { return !(one == kind); };
  if (std::any_of(stack.shape.layers.begin(), stack.shape.layers.end(), is_other)) return std::nullopt;
  if (stack.shape.is_mamba(kind)) return std::nullopt;
  Layer layer = stack.layer_of(kind);
  layer.pass = stack.pass();
  layer.blocks = split.blocks;
  const auto exchange = stack.method(kind).claim(layer, split);
  if (!exchange) return std::nullopt;
  const std::int64_t shard = stack.weight_count(kind, split.ranks) / split.ranks;
  const std::int64_t rows = stack.runs_whole() ? stack.tokens * stack.shape.width : 0;
  const std::int64_t gathers = !stack.has_backward || layers == 1 ? layers : 2 * layers - 2;
  const std::int64_t scatters = stack.has_backward ? layers : 0;
  // Weights travel in their own type, and gradients are sums in f32.
  const std::int64_t message = shard * (gathers * bytes_of(stack.layer.dtype) + scatters * element_bytes);
  return layers * (exchange->sent_bytes + (split.ranks - 1) * rows * bytes_of(stack.layer.dtype)) +
         (stack.shards_weights ? (split.ranks - 1) * message : 0);
}

Schedule build(const Stack& stack, int rank, int ranks, int ranks_per_node) {
  Schedule schedule(rank, ranks, ranks_per_node);
  Recorder(schedule, stack).record();
  return schedule;
}

}  // namespace baton
