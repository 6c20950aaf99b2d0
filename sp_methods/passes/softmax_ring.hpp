// SPDX-License-Identifier: Apache-2.0
// Ring Attention's passes for softmax attention, and the keys and values that circulate in them.
//
//   forward:  held = k | v of this rank;  (out, lse) = attention over the own block
//     for i = 1 .. P-1:  hop;  held is now the block of rank r-i
//       if any of it is visible:  (out, lse) = merge of (out, lse) and attention over it
//   backward, in the same turn, from out and lse of the whole sequence:  dk | dv of a block start
//     at its own rank and circulate one hop behind it; every rank that sees the block adds its
//     gradients, and the last hop returns the sums to the owner
//
// Cost: P-1 hops of key_value_elements in the tensors' type a pass; backward also P hops of as many
// in f32. Inside an `Among` scope its ranks are the ring.
// Source: arXiv 2310.01889 (Ring Attention); zhuzilin/ring-flash-attention, ring_flash_attn.py.
#pragma once

#include "sp_methods/passes/softmax_steps.hpp"

namespace baton {

/// The keys and values of all ranks, which come one rank after another.
class KeyRing {
 public:
  KeyRing(Schedule& schedule, const Layer& layer, const LayerTensors& tensors, const SoftmaxSteps& steps)
      : schedule_(schedule),
        x_(tensors),
        steps_(steps),
        blocks_(schedule, "blocks", schedule.ranks() > 1 ? steps.most_keys_and_values() : 0, layer.dtype,
                [this](int rank) { return steps_.keys_and_values(rank); }) {}
  KeyRing(const KeyRing&) = delete;
  KeyRing& operator=(const KeyRing&) = delete;

  /// Makes the block that this rank sends. It must be called before the first hop of every pass.
  void start() {
    if (schedule_.ranks() == 1) return;
    blocks_.begin();
    const RingBlock own = block_of(0, blocks_.held());
    schedule_.copy(own.k, x_.k);
    schedule_.copy(own.v, x_.v);
  }

  /// The block that this rank holds after hop i. The block of hop 0 is read from the tensors.
  RingBlock held(int i) const { return i > 0 ? block_of(i, blocks_.held()) : RingBlock{x_.k, x_.v, {}}; }
  /// The keys and values, or their gradients, in a slot with the block that comes with hop i.
  RingBlock block_of(int i, const Slice& slot) const { return block_in(slot, steps_.share_of(pair(i).keys)); }

  void hop() { blocks_.hop(); }

  /// This rank's queries and the keys that come with hop i.
  RankPair pair(int i) const {
    const int ranks = schedule_.ranks(), rank = schedule_.rank();
    return {rank, (rank - i + ranks) % ranks};
  }

 private:
  Schedule& schedule_;
  const LayerTensors& x_;
  const SoftmaxSteps& steps_;
  Ring blocks_;
};

/// Records the forward pass of Ring Attention, which sets `result` and x.o of this rank's queries.
inline void ring_forward(Schedule& s, const Layer& layer, const LayerTensors& x, SoftmaxSteps& steps,
                         KeyRing& keys, const PartialOutput& result) {
  const int P = s.ranks();
  const PartialOutput part{s.scratch("block_out", P > 1 ? steps.values() : 0, steps.part_dtype()),
                           s.scratch("block_lse", P > 1 ? steps.rows() : 0)};
  keys.start();
  for (int i = 0; i < P; ++i) {
    const RingBlock block = keys.held(i);
    if (i + 1 < P) keys.hop();
    wait_if_exposed(s, layer);
    if (i == 0) steps.attend(result, x.q, block, keys.pair(i));
    if (i > 0 && steps.is_visible(keys.pair(i))) {
      steps.attend(part, x.q, block, keys.pair(i));
      steps.merge(result, part);
    }
    wait_if_exposed(s, layer);
  }
  set(s, x.o, result.out);
}

/// Records the backward pass of Ring Attention.
class RingGradients {
 public:
  RingGradients(Schedule& s, const Layer& layer, const LayerTensors& x, SoftmaxSteps& steps)
      : s_(s), layer_(layer), x_(x), steps_(steps) {}

  void backward(KeyRing& keys, const PartialOutput& result) {
    const int P = s_.ranks();
    if (P == 1 && steps_.part_dtype() == x_.dq.dtype) return set_at_once(keys, result);
    const std::int64_t most = steps_.most_keys_and_values();
    Ring gradients(s_, "gradients", most, Dtype::f32,
                   [this](int rank) { return steps_.keys_and_values(rank); });
    const Slice block_gradients = s_.scratch("part", P > 1 ? most : 0, steps_.part_dtype());
    const QuerySide queries{x_.q, x_.d_o, result.lse, s_.scratch("delta", steps_.rows())};
    dq_ = sums_of(s_, x_.dq, "dq_sums");
    keys.start();
    steps_.set_delta(queries.delta, x_.d_o, result.out);
    for (int i = 0; i < P; ++i) {
      const RingBlock block = keys.held(i);
      if (i + 1 < P) keys.hop();
      if (i > 0) gradients.hop();
      wait_if_exposed(s_, layer_);
      // The circulating sums may not have arrived yet: the gradients are computed apart from them.
      if (i == 0) begin_gradients(i, gradients.held(), queries, block, keys);
      if (i > 0 && steps_.is_visible(keys.pair(i))) {
        const Slice part = block_gradients.part(0, gradients.held().count);
        begin_gradients(i, part, queries, block, keys);
        add(s_, gradients.held(), part);
      }
      wait_if_exposed(s_, layer_);
    }
    gradients.hop();
    wait_if_exposed(s_, layer_);
    set_gradients(s_, x_, {dq_, keys.block_of(0, gradients.held())});
  }

 private:
  /// Sets the gradients of a sequence that lies on one rank, in the type that they end in.
  void set_at_once(const KeyRing& keys, const PartialOutput& result) {
    const QuerySide queries{x_.q, x_.d_o, result.lse, s_.scratch("delta", steps_.rows())};
    steps_.set_delta(queries.delta, x_.d_o, result.out);
    steps_.begin_gradients(true, x_.dq, {x_.dk, x_.dv, {}}, queries, keys.held(0), keys.pair(0));
  }

  /// Adds the gradients of the block of hop i to dq, which hop 0 sets, and sets `into` to dk | dv
  /// of the block.
  void begin_gradients(int i, const Slice& into, const QuerySide& queries, const RingBlock& block,
                       const KeyRing& keys) {
    steps_.begin_gradients(i == 0, dq_, keys.block_of(i, into), queries, block, keys.pair(i));
  }

  Schedule& s_;
  const Layer& layer_;
  const LayerTensors& x_;
  SoftmaxSteps& steps_;
  Slice dq_;  // f32 sums
};

/// Ring Attention's passes for one layer of softmax attention.
class RingSoftmax {
 public:
  RingSoftmax(Schedule& s, const Layer& layer, const LayerTensors& x, Layout layout)
      : s_(s),
        layer_(layer),
        x_(x),
        steps_(s, layer, layout),
        keys_(s, layer, x, steps_),
        result_(s.ranks() == 1 ? steps_.result_of_one_block(x.o) : steps_.result(x.o)) {}

  void forward() { ring_forward(s_, layer_, x_, steps_, keys_, result_); }
  void backward() { RingGradients(s_, layer_, x_, steps_).backward(keys_, result_); }

 private:
  Schedule& s_;
  const Layer& layer_;
  const LayerTensors& x_;
  SoftmaxSteps steps_;
  KeyRing keys_;  // of both passes
  PartialOutput result_;
};

/// Cost of the hops of keys and values in one pass. The block of the next rank is the only one that
/// a rank does not send.
inline Cost key_ring_cost(const Layer& layer, int ranks, Layout layout) {
  const Cut cut = cut_of(layer, layout, ranks);
  return {(cut.sequence() - cut.least()) * key_value_row(layer.share) * bytes_of(layer.dtype), ranks - 1};
}

/// Cost of Ring Attention's passes. Blocks make P-1 hops in each pass; gradients make P, one behind
/// the blocks.
inline Cost ring_softmax_cost(const Layer& layer, int ranks, Layout layout) {
  if (ranks == 1) return {};
  const Cost blocks = key_ring_cost(layer, ranks, layout);
  if (layer.pass == Pass::forward) return blocks;
  const Cut cut = cut_of(layer, layout, ranks);
  Cost cost = layer.pass == Pass::both ? blocks : Cost{};
  cost.sent_bytes += blocks.sent_bytes + cut.sequence() * key_value_row(layer.share) * bytes_of(Dtype::f32);
  cost.hops += layer.mode == Mode::exposed ? ranks + 1 : ranks;
  if (cut.least() == 0) cost.hops = -1;  // its rank waits for nothing, so another chain may be longest
  return cost;
}

}  // namespace baton
