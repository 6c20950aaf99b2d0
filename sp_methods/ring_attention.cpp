// SPDX-License-Identifier: Apache-2.0
// Ring Attention for linear attention without its states: products from the left, keys and values go round.
//
//   held = K^ | V | decay of this rank                     K^: keys decayed to the end of their rank
//   o = own block
//   for i = 1 .. P-1:  hop;  held is now the block of rank r-i
//     if that is an earlier rank:  o += block (.) between;  between = between (.) decay of the block
//   backward, in the same turn:  dK^ | dV of a block start at the rank after its own, go one block behind it, take
//     a part from every rank that sees it, and come home;  then the gates' part of all later ranks by a small scan
//
// In the device's form, which bf16 has and `segmented` asks for, tensors have rests. A rest: what pairs of different
// tiles add to a tensor, those of other ranks' blocks included; in f32, added at the end.
//
// Cost: forward P-1 hops of tokens*heads*(d_k+d_v) elements, and heads*d_k of decay where there are gates; blocks of
// later ranks are passed on unseen. Backward the same, as many hops of gradients (the first of their P hops would carry
// zeros), and a scan of heads*d_k. At most P + log2 P hops wait for one another. Work: the square of the tokens.
// Source: arXiv 2310.01889 (Ring Attention); the baseline of "LASP-2", arXiv 2502.07563, section 4.1.
#include <algorithm>
#include <functional>
#include <utility>

#include "collectives/collective.hpp"
#include "sp_methods/kernels/host/left_product/bytes.hpp"
#include "sp_methods/kernels/host/left_product/gradients.hpp"
#include "sp_methods/layer_steps.hpp"
#include "sp_methods/ring.hpp"

namespace baton {
namespace {

KeyBlock key_block(const HostOperands& m, std::size_t k, std::int64_t tokens) {
  return {m.reads[k].data(), m.reads[k + 1].data(), tokens};
}

class LinearRing {
 public:
  LinearRing(Schedule& s, const Layer& layer, const LayerTensors& x)
      : s_(s),
        layer_(layer),
        share_(layer.share),
        x_(x),
        decays_(share_.gate == GateKind::none ? 0 : share_.heads * share_.d_k),
        has_rest_(layer.segmented || layer.dtype != Dtype::f32),
        bytes_{share_, bytes_of(layer.dtype), has_rest_},
        decay_elements_(decays_ * bytes_of(Dtype::f32) / bytes_of(layer.dtype)),
        blocks_(s, "blocks", s.ranks() > 1 ? key_value_elements(share_) + decay_elements_ : 0, layer.dtype),
        between_(s.scratch("between", decay_elements_, layer.dtype)) {
    if (!has_rest_ || decays_ == 0) return;
    const std::int64_t tiles = (share_.tokens + device_tile - 1) / device_tile;
    scaled_ = s.scratch("scaled", 2 * share_.tokens * decays_, layer.dtype);
    edges_ = s.scratch("tile_edges", (3 * tiles + 2) * decays_);
    if (s.ranks() > 1) queries_ = s.scratch("block_queries", share_.tokens * decays_, layer.dtype);
  }

  void forward() {
    const int P = s_.ranks(), r = s_.rank();
    o_rest_ = rest("o_rest", x_.o);
    pack_own();
    for (int i = 0; i < P; ++i) {
      const Slice held = blocks_.held();
      if (i + 1 < P) blocks_.hop();
      wait_if_exposed(s_, layer_);
      if (i == 0) own_block();
      if (0 < i && i <= r) earlier_block(held, i);
      wait_if_exposed(s_, layer_);
    }
    if (has_rest_) add(s_, x_.o, o_rest_);
  }

  void backward() {
    const int P = s_.ranks(), r = s_.rank();
    const std::int64_t count = P > 1 ? key_value_elements(share_) : 0;
    Ring gradients(s_, "gradients", count);
    const Slice part = s_.scratch("part", count), edges = s_.scratch("edges", 2 * decays_);
    const Map edge{edges.part(0, decays_), edges.part(decays_, decays_), 1};
    q_rest_ = rest("q_rest", x_.dq);
    k_rest_ = rest("k_rest", x_.dk);
    v_rest_ = rest("v_rest", x_.dv);
    if (decays_ > 0) z_rest_ = rest("z_rest", x_.dq);
    if (decays_ > 0 && P > 1) block_x_ = rest("block_x", x_.dq);
    fill(s_, edge.state, 0.0F);
    pack_own();
    for (int i = 0; i < P; ++i) {
      const Slice held = blocks_.held();
      if (i + 1 < P) blocks_.hop();
      if (i > 1) gradients.hop();
      wait_if_exposed(s_, layer_);
      if (i == 0) own_gradients();
      if (i == 1) fill(s_, gradients.held(), 0.0F);
      // The sum that travels may still be on its way: what is added to it is computed apart from it.
      if (i == 1 && i <= r) earlier_gradients(held, i, gradients.held(), edge.state);
      if (i > 1 && i <= r) {
        fill(s_, part, 0.0F);
        earlier_gradients(held, i, part, edge.state);
        add(s_, gradients.held(), part);
      }
      wait_if_exposed(s_, layer_);
    }
    gradients.hop();
    wait_if_exposed(s_, layer_);
    if (P > 1 || has_rest_)
      home_gradients(P > 1 ? block_in(gradients.held(), share_) : RingBlock{}, edge.state);
    if (decays_ > 0) later_gates(edge);
  }

 private:
  /// Tokens of a tile of the device's form, whose decays it keeps (left_product_device.cuh).
  static constexpr std::int64_t device_tile = 64;

  Slice rest(const char* name, const Slice& of) { return has_rest_ ? s_.scratch(name, of.count) : Slice{}; }

  Kernel kernel(const char* name, std::function<void(const HostOperands&)> body, double flops,
                double bytes) const {
    return {name, std::move(body), flops, bytes, ring_parameters(layer_)};
  }

  /// Makes what this rank sends round, and what a device needs of its gates.
  void pack_own() {
    const bool sends = s_.ranks() > 1;
    const RingBlock own = sends ? block_in(blocks_.held(), share_) : RingBlock{};
    const auto keys = [share = share_](const HostOperands& m) {
      if (!m.writes[0].empty())
        left_product_keys(m.writes[0].data(), m.writes[1].data(), inputs_of(m), share);
    };
    if (sends && decays_ == 0) s_.copy(own.k, x_.k);
    if (decays_ > 0 && (sends || has_rest_))
      s_.compute(kernel("left_product_keys", keys, left_product_keys_flops(share_), bytes_.keys(sends)),
                 {own.k, own.decay, scaled_, edges_}, input_slices(x_));
    if (sends) s_.copy(own.v, x_.v);
  }

  void own_block() {
    const auto body = [share = share_](const HostOperands& m) {
      left_product_own_block(m.writes[0].data(), inputs_of(m), share);
      std::ranges::fill(m.writes[1], 0.0F);
    };
    s_.compute(
        kernel("left_product_own_block", body, left_product_own_block_flops(share_), bytes_.own_block()),
        {x_.o, o_rest_}, with(input_slices(x_), {scaled_, edges_}));
  }

  void earlier_block(const Slice& held, int i) {
    const RingBlock block = block_in(held, share_);
    const auto body = [share = share_](const HostOperands& m) {
      left_product_block(m.writes[0].data(), inputs_of(m), key_block(m, 4, share.tokens), pointer(m.reads[6]),
                         share);
    };
    const Slice& sums = has_rest_ ? o_rest_ : x_.o;
    s_.compute(kernel("left_product_block", body, left_product_block_flops(share_, share_.tokens),
                      bytes_.block(share_.tokens)),
               {sums, queries_},
               with(input_slices(x_), {block.k, block.v, between(i), scaled_, edges_, sums}));
    extend(block.decay, i);
  }

  void own_gradients() {
    const auto body = [share = share_](const HostOperands& m) {
      left_product_own_gradients(gradients_of(m), inputs_of(m), m.reads[4].data(), share);
      for (std::size_t rest = 4; rest < m.writes.size(); ++rest) std::ranges::fill(m.writes[rest], 0.0F);
    };
    s_.compute(kernel("left_product_own_gradients", body, left_product_own_gradients_flops(share_),
                      bytes_.own_gradients()),
               with(gradient_slices(x_), {q_rest_, k_rest_, v_rest_, z_rest_}),
               with(input_slices(x_), {x_.d_o, scaled_, edges_}));
  }

  /// Adds to dq, dg and edge of this rank, and to `into`, the gradients of the held block.
  void earlier_gradients(const Slice& held, int i, const Slice& into, const Slice& edge) {
    const RingBlock block = block_in(held, share_), out = block_in(into, share_);
    const auto body = [share = share_](const HostOperands& m) {
      const GlaGradients own{m.writes[0].data(), nullptr, nullptr, pointer(m.writes[1])};
      left_product_block_gradients(own, pointer(m.writes[2]), {m.writes[3].data(), m.writes[4].data()},
                                   inputs_of(m), m.reads[4].data(), key_block(m, 5, share.tokens),
                                   pointer(m.reads[7]), share);
    };
    const std::vector<Slice> sums{x_.dq, x_.dg, edge, out.k, out.v, q_rest_, z_rest_};
    const std::vector<Slice> seen{x_.d_o, block.k, block.v, between(i), scaled_, edges_};
    s_.compute(kernel("left_product_block_gradients", body,
                      left_product_block_gradients_flops(share_, share_.tokens),
                      bytes_.block_gradients(share_.tokens)),
               with(sums, {queries_, block_x_}), with(with(input_slices(x_), seen), sums));
    extend(block.decay, i);
  }

  /// Adds what the gradients of this rank's keys and values brought home, and the rests.
  void home_gradients(const RingBlock& home, const Slice& edge) {
    const bool travelled = !home.k.empty();
    const auto body = [share = share_](const HostOperands& m) {
      if (m.writes[5].empty()) return;
      left_product_home_gradients(gradients_of(m), pointer(m.writes[4]),
                                  {m.writes[5].data(), m.writes[6].data()}, inputs_of(m), share);
    };
    // The kernel takes what came home as memory of its own, though it leaves it as it was.
    const std::vector<Slice> sums =
        with(gradient_slices(x_), {edge, home.k, home.v, q_rest_, k_rest_, z_rest_, edges_});
    // The rests, which the host's form leaves zero and does not add, are as many numbers as what comes home.
    const int parts = (travelled ? 1 : 0) + (has_rest_ ? 1 : 0);
    s_.compute(kernel("left_product_home_gradients", body, parts * left_product_home_gradients_flops(share_),
                      bytes_.home_gradients(travelled)),
               sums, with(with(input_slices(x_), {scaled_, v_rest_}), sums));
  }

  /// Adds to dg the edges of all later ranks, and the rests.
  void later_gates(const Map& edge) {
    const Slice later = sum_of_later(edge);
    if (later.empty() && !has_rest_) return;
    const auto body = [share = share_](const HostOperands& m) {
      if (!m.reads[0].empty()) left_product_edge_gradients(m.writes[0].data(), m.reads[0].data(), share);
    };
    const auto bytes = static_cast<double>(2 * x_.dg.bytes() + later.bytes() + z_rest_.bytes());
    s_.compute(kernel("left_product_edge_gradients", body, static_cast<double>(x_.dg.count), bytes), {x_.dg},
               {later, x_.dg, z_rest_, edges_});
  }

  /// The sum of edges over later ranks: an exclusive scan of states whose decay is one. Empty where there is no later one.
  Slice sum_of_later(const Map& edge) {
    if (s_.ranks() == 1) return {};
    const Slice later = s_.scratch("later", decays_);
    fill(s_, edge.decay, 1.0F);
    {
      const Reversed reversed(s_);
      embed(s_, "recursive_doubling", {edge, later, 1});
    }
    wait_if_exposed(s_, layer_);
    return s_.rank() + 1 < s_.ranks() ? later : Slice{};
  }

  /// The decay of the ranks between this one and the block that came with hop i: none for the nearest.
  Slice between(int i) const { return i > 1 ? between_ : Slice{}; }

  /// Puts the rank of that block between, if another earlier one comes.
  void extend(const Slice& decay, int i) {
    if (i == s_.rank() || decay.empty()) return;
    if (i == 1) return s_.copy(between_, decay);
    const auto body = [share = share_](const HostOperands& m) {
      extend_decay(m.writes[0].data(), m.reads[0].data(), share);
    };
    const auto bytes = static_cast<double>(decay.bytes());
    s_.compute(kernel("extend_decay", body, static_cast<double>(decay.count), 3.0 * bytes), {between_},
               {decay, between_});
  }

  Schedule& s_;
  const Layer& layer_;
  GlaShape share_;
  const LayerTensors& x_;
  std::int64_t decays_;  // elements of one rank's decay, 0 where there is no gate
  bool has_rest_;        // in the device's form
  LeftProductBytes bytes_;
  std::int64_t decay_elements_;  // of the tensors' type; a decay is of f32
  Ring blocks_;
  Slice between_;
  Slice scaled_, edges_;     // of the device's form: queries and keys, decays of tiles
  Slice queries_, block_x_;  // as one block needs them, and what it adds to
  Slice o_rest_, q_rest_, k_rest_, v_rest_, z_rest_;
};

void ring_attention(Schedule& s, const Layer& layer, const LayerTensors& x) {
  LinearRing ring(s, layer, x);
  if (layer.pass != Pass::backward) ring.forward();
  if (layer.pass == Pass::both) s.fence();  // the gradient of the output is not there before the output
  if (layer.pass != Pass::forward) ring.backward();
}

const RegisteredMethod registered{{
    .name = "ring_attention",
    .summary = "keys and values around the ring, left products: quadratic in the tokens",
    .attention = Attention::linear,
    .build = ring_attention,
    .unsupported = [](const Layer& layer, int) { return unsupported_in_a_ring(layer); },
}};

}  // namespace
}  // namespace baton
