// SPDX-License-Identifier: Apache-2.0 Double-Ring-Attention of LoongTrain for causal softmax
// attention, with contiguous or zigzag tokens: a ring in every node of G ranks inside a ring across
// the M nodes.
//
//   window = k | v of this rank
//   for o = 0 .. M-1:
//     send the window to the same place on the next node, receive that of the node before
//     for i = 0 .. G-1:  held = the window of the rank i places before on this node
//       (out, lse) = merge of (out, lse) and attention over held;  held makes a hop on the node
//   backward, in the same turn:  dk | dv of a window circulate on the node one hop behind it, and
//     return to its holder, which adds them to those that came from the node before; these
//     circulate one node behind the windows
//
// A hop across nodes has a whole ring of local work to hide under, and each node's links to others
// carry P-1 blocks in M-1 hops. Where the last node is partly filled, all ranks are one node.
// Keys and values circulate in the tensors' type, their gradients in f32.
// Cost: blocks of tokens*heads*(d_k+d_v) elements, P-1 a pass; gradients M G on the nodes if G > 1,
// and M across if M > 1.
// Source: arXiv 2406.18485 (LoongTrain), section 4.2.
#include <optional>

#include "sp_methods/passes/softmax_steps.hpp"

namespace baton {
namespace {

/// Nodes with equally many ranks.
struct FullNodes {
  int count = 1;  // nodes
  int size = 1;   // ranks of each

  explicit FullNodes(const Nodes& nodes) {
    const int ranks = nodes.begin(nodes.count());
    size = ranks % nodes.full_size() == 0 ? nodes.full_size() : ranks;
    count = ranks / size;
  }
  std::vector<int> node_of(int rank) const { return every(rank / size * size, 1, size); }
  /// The ranks that have the place of `rank` on all nodes.
  std::vector<int> places_of(int rank) const { return every(rank % size, size, count); }

 private:
  static std::vector<int> every(int first, int apart, int count) {
    std::vector<int> ranks;
    for (int i = 0; i < count; ++i) ranks.push_back(first + i * apart);
    return ranks;
  }
};

/// A ring among some of the ranks.
class RingAmong {
 public:
  RingAmong(Schedule& s, std::vector<int> ranks, std::string name, std::int64_t count, Dtype dtype)
      : s_(s), ranks_(std::move(ranks)) {
    const Among some(s_, ranks_);
    ring_.emplace(s_, std::move(name), count, dtype);
  }

  Slice held() const { return ring_->held(); }
  void hop() {
    const Among some(s_, ranks_);
    ring_->hop();
  }

 private:
  Schedule& s_;
  std::vector<int> ranks_;
  std::optional<Ring> ring_;
};

class DoubleRing {
 public:
  DoubleRing(Schedule& s, const Layer& layer, const LayerTensors& x, Layout layout)
      : s_(s),
        layer_(layer),
        x_(x),
        steps_(s, layer, layout),
        nodes_(s.nodes()),
        result_(steps_.result(x.o)) {}

  void forward() {
    const int P = s_.ranks();
    const PartialOutput part{s_.scratch("block_out", P > 1 ? steps_.values() : 0),
                             s_.scratch("block_lse", P > 1 ? steps_.rows() : 0)};
    for_blocks([](int) {},
               [&](int o, int i, const RingBlock& block) {
                 if (o == 0 && i == 0) return steps_.attend(result_, x_.q, block, pair(o, i));
                 if (!steps_.is_visible(pair(o, i))) return;
                 steps_.attend(part, x_.q, block, pair(o, i));
                 steps_.merge(result_, part);
               });
    set(s_, x_.o, result_.out);
  }

  void backward() {
    const std::int64_t count = key_value_elements(layer_.share);
    RingAmong inner(s_, nodes_.node_of(s_.rank()), "node_gradients", count, Dtype::f32);
    RingAmong outer(s_, nodes_.places_of(s_.rank()), "gradients", nodes_.count > 1 ? count : 0, Dtype::f32);
    const Slice part = s_.scratch("part", nodes_.size > 1 ? count : 0);
    const QuerySide queries{x_.q, x_.d_o, result_.lse, s_.scratch("delta", steps_.rows())};
    const Slice dq = sums_of(s_, x_.dq, "dq_sums");
    steps_.set_delta(queries.delta, x_.d_o, result_.out);
    fill(s_, dq, 0.0F);
    const auto add_gradients = [&](const Slice& into, int o, int i, const RingBlock& block) {
      fill(s_, into, 0.0F);
      if (steps_.is_visible(pair(o, i)))
        steps_.add_gradients(dq, block_in(into, layer_.share), queries, block, pair(o, i));
    };
    const auto hop = [&](int i) {
      if (i > 0) inner.hop();
    };
    for_blocks(hop, [&](int o, int i, const RingBlock& block) {
      // The circulating sums may not have arrived yet: the gradients are computed apart from them.
      if (i == 0) add_gradients(inner.held(), o, i, block);
      if (i > 0 && steps_.is_visible(pair(o, i))) {
        add_gradients(part, o, i, block);
        add(s_, inner.held(), part);
      }
      if (i + 1 == nodes_.size) hand_on(outer, inner, o);
    });
    const RingBlock returned = block_in(nodes_.count > 1 ? outer.held() : inner.held(), layer_.share);
    set_gradients(s_, x_, {dq, returned});
  }

 private:
  /// This rank's queries, and the keys that it has in turn i of the node's ring and turn o of the
  /// ring across nodes.
  RankPair pair(int o, int i) const {
    const int M = nodes_.count, G = nodes_.size, r = s_.rank();
    return {r, (r / G - o + M) % M * G + (r % G - i + G) % G};
  }

  /// Calls visit(o, i, block) for the block of each turn, while the next blocks are on their way.
  /// Before it calls hop(i), for what circulates with the blocks.
  template <class Hop, class Visit>
  void for_blocks(const Hop& hop, const Visit& visit) {
    const int M = nodes_.count, G = nodes_.size;
    const std::int64_t count = key_value_elements(layer_.share);
    RingAmong outer(s_, nodes_.places_of(s_.rank()), "windows", M > 1 ? count : 0, layer_.dtype);
    RingAmong inner(s_, nodes_.node_of(s_.rank()), "blocks", G > 1 ? count : 0, layer_.dtype);
    pack_own(outer.held());
    pack_own(inner.held());
    for (int o = 0; o < M; ++o) {
      const Slice window = outer.held();
      if (o > 0 && G > 1) s_.copy(inner.held(), window);
      if (o + 1 < M) outer.hop();
      for (int i = 0; i < G; ++i) {
        const Slice held = i == 0 ? window : inner.held();
        if (i + 1 < G) inner.hop();
        hop(i);
        wait_if_exposed(s_, layer_);
        visit(o, i, o + i == 0 ? RingBlock{x_.k, x_.v, {}} : block_in(held, layer_.share));
        wait_if_exposed(s_, layer_);
      }
    }
  }

  /// Moves the gradient sums of a window from the node's ring to the ring across nodes.
  void hand_on(RingAmong& across, RingAmong& on_node, int o) {
    wait_if_exposed(s_, layer_);
    on_node.hop();  // to the holder of the window
    if (nodes_.count == 1) return;
    if (o > 0) across.hop();
    if (o == 0) s_.copy(across.held(), on_node.held());
    if (o > 0) add(s_, across.held(), on_node.held());
    wait_if_exposed(s_, layer_);
    if (o + 1 == nodes_.count) across.hop();  // to the owner
  }

  /// Copies this rank's keys and values to `window`, which it sends.
  void pack_own(const Slice& window) {
    if (window.empty()) return;
    const RingBlock own = block_in(window, layer_.share);
    s_.copy(own.k, x_.k);
    s_.copy(own.v, x_.v);
  }

  Schedule& s_;
  const Layer& layer_;
  const LayerTensors& x_;
  SoftmaxSteps steps_;
  FullNodes nodes_;
  PartialOutput result_;
};

void build(Schedule& s, const Layer& layer, const LayerTensors& x, Layout layout) {
  DoubleRing method(s, layer, x, layout);
  run_passes(s, layer, method);
}

/// Hops of a forward pass on M nodes of G ranks. A hop on a node waits for the slots of the hop
/// before.
int forward_hops(int M, int G) { return G > 1 ? M * (G - 1) : M - 1; }

/// Hops of a backward pass on M nodes of G ranks. Gradients return after the last block.
int backward_hops(int M, int G, Mode mode) {
  if (M * G == 1) return 0;
  const bool is_exposed = mode == Mode::exposed;
  if (M == 1) return is_exposed ? G + 1 : G;
  if (G == 1) return is_exposed ? 2 * M - 1 : M;
  return is_exposed ? M * (G + 1) + 1 : M * G + 1;
}

std::optional<Cost> claim(const Layer& layer, const Split& split) {
  const FullNodes nodes(split.nodes());
  const int M = nodes.count, G = nodes.size;
  const std::int64_t elements = key_value_elements(layer.share);
  const std::int64_t blocks = (M * G - 1) * elements * bytes_of(layer.dtype);
  const std::int64_t gradients = ((G > 1 ? M * G : 0) + (M > 1 ? M : 0)) * elements * bytes_of(Dtype::f32);
  Cost cost;
  if (layer.pass != Pass::backward) cost = {blocks, forward_hops(M, G)};
  if (layer.pass == Pass::forward) return cost;
  cost.sent_bytes += blocks + gradients;
  cost.hops += backward_hops(M, G, layer.mode);
  return cost;
}

const RegisteredMethod registered[]{
    softmax_method("double_ring", "rings on the nodes inside a ring across them, softmax, contiguous tokens",
                   contiguous, build, claim),
    softmax_method("double_ring_zigzag",
                   "rings on the nodes inside a ring across them, softmax, zigzag tokens", zigzag, build,
                   claim),
};

}  // namespace
}  // namespace baton
