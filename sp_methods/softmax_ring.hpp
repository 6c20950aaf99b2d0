// SPDX-License-Identifier: Apache-2.0
// Ring Attention's forward pass for causal softmax attention, and the keys and values that
// circulate in it.
//
//   held = k | v of this rank;  (out, lse) = attention over the own block
//   for i = 1 .. P-1:  hop;  held is now the block of rank r-i
//     if any of it is visible:  (out, lse) = merge of (out, lse) and attention over it
//
// Cost: P-1 hops of key_value_elements in the tensors' type.
// Source: arXiv 2310.01889 (Ring Attention); zhuzilin/ring-flash-attention, ring_flash_attn.py.
#pragma once

#include "sp_methods/softmax_steps.hpp"

namespace baton {

/// The keys and values of all ranks, in turn.
class KeyRing {
 public:
  KeyRing(Schedule& schedule, const Layer& layer, const LayerTensors& tensors)
      : schedule_(schedule),
        share_(layer.share),
        x_(tensors),
        blocks_(schedule, "blocks", schedule.ranks() > 1 ? key_value_elements(share_) : 0, layer.dtype) {}

  /// Makes the block that this rank sends. Before the first hop of every pass.
  void start() {
    if (schedule_.ranks() == 1) return;
    const RingBlock own = block_in(blocks_.held(), share_);
    schedule_.copy(own.k, x_.k);
    schedule_.copy(own.v, x_.v);
  }

  /// The block of hop i. That of hop 0 is read from the tensors.
  RingBlock held(int i) const { return i > 0 ? block_in(blocks_.held(), share_) : RingBlock{x_.k, x_.v, {}}; }

  void hop() { blocks_.hop(); }

  /// This rank's queries and the keys that come with hop i.
  RankPair pair(int i) const {
    const int ranks = schedule_.ranks(), rank = schedule_.rank();
    return {rank, (rank - i + ranks) % ranks};
  }

 private:
  Schedule& schedule_;
  const GlaShape& share_;
  const LayerTensors& x_;
  Ring blocks_;
};

/// Records the forward pass: `result` and x.o of this rank's queries.
inline void ring_forward(Schedule& s, const Layer& layer, const LayerTensors& x, SoftmaxSteps& steps,
                         KeyRing& keys, const PartialOutput& result) {
  const int P = s.ranks();
  const PartialOutput part{s.scratch("block_out", P > 1 ? steps.values() : 0),
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

/// The cost of a forward pass, and of what it sends again in a backward pass.
inline Cost key_ring_cost(const Layer& layer, int ranks) {
  return {(ranks - 1) * key_value_elements(layer.share) * bytes_of(layer.dtype), ranks - 1};
}

}  // namespace baton
