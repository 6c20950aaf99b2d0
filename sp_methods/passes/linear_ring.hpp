// SPDX-License-Identifier: Apache-2.0
// Ring Attention's passes for linear attention without states: keys and values circulate, and
// each rank forms the left products of its queries with them (kernels/left_product.hpp).
//
//   held = k_end | v | decay of this rank            k_end: keys decayed to their rank's end
//   o = own block
//   for i = 1 .. P-1:  hop;  held is now the block of rank r-i
//     if that rank is earlier:  o += block (.) between;  between = between (.) its decay
//   backward, in the same turn:  dk_end | dv of a block start at the rank after its own and
//     circulate one hop behind it; every later rank adds its gradients, and the last hop returns
//     the sums to the owner.  A small scan adds the boundary gate sums of later ranks to dg.
//
// Layers of bf16, and `segmented` ones, have f32 accumulators, which the last steps add to tensors.
//
// Shares may differ. A rank without tokens makes a decay of one and passes all on.
// Source: arXiv 2310.01889 (Ring Attention); the baseline of "LASP-2", arXiv 2502.07563, 4.1.
#pragma once

#include "collectives/collective.hpp"
#include "sp_methods/kernels/left_product.hpp"
#include "sp_methods/passes/ring.hpp"

namespace baton {

/// Ring Attention's passes for one layer of linear attention.
class LinearRing {
 public:
  /// The scan of the boundary gate sums.
  static constexpr const char* scan = "recursive_doubling";

  LinearRing(Schedule& s, const Layer& layer, const LayerTensors& x)
      : s_(s),
        layer_(layer),
        x_(x),
        p_{.shape = layer.share,
           .block_tokens = layer.share.tokens,
           .dtype = layer.dtype,
           .has_accumulators = layer.segmented || layer.dtype != Dtype::f32,
           .circulates = s.ranks() > 1,
           .kernels = layer.kernels},
        cut_(cut_of(layer, Layout::contiguous, s.ranks())),
        channels_(p_.is_gated() ? p_.shape.heads * p_.shape.d_k : 0),
        decay_elements_(channels_ * bytes_of(Dtype::f32) / bytes_of(layer.dtype)),
        blocks_(s, "blocks", p_.circulates ? most_keys_and_values() + decay_elements_ : 0, layer.dtype,
                [this](int rank) { return p_.circulates ? keys_and_values(rank) + decay_elements_ : 0; }),
        between_(s.scratch("between", decay_elements_, layer.dtype)) {
    if (!p_.has_accumulators || !p_.is_gated()) return;
    scaled_.scaled = s.scratch("scaled", ScaledRank<Recorded>::scaled_elements(p_), layer.dtype);
    scaled_.decay_table = s.scratch("tile_edges", ScaledRank<Recorded>::decay_table_elements(p_));
    if (p_.circulates)
      q_block_ = s.scratch("block_queries", LeftProductBlock::q_block_elements(p_), layer.dtype);
  }

  LinearRing(const LinearRing&) = delete;  // its rings know it
  LinearRing& operator=(const LinearRing&) = delete;

  void forward() {
    const int P = s_.ranks(), r = s_.rank();
    o_accumulator_ = accumulator("o_rest", x_.o);
    pack_own();
    for (int i = 0; i < P; ++i) {
      const Slice held = blocks_.held();
      if (i + 1 < P) blocks_.hop();
      wait_if_exposed(s_, layer_);
      if (i == 0 && has_tokens())
        record<LeftProductOwnBlock>(
            s_, p_, {.in = x_.inputs(), .rank = scaled_, .o = x_.o, .o_accumulator = o_accumulator_});
      if (0 < i && i <= r) add_earlier_block(held, i);
      wait_if_exposed(s_, layer_);
    }
    if (p_.has_accumulators) add(s_, x_.o, o_accumulator_);
  }

  void backward() {
    const int P = s_.ranks(), r = s_.rank();
    const std::int64_t most = p_.circulates ? most_keys_and_values() : 0;
    Ring gradients(s_, "gradients", most, Dtype::f32,
                   [this](int rank) { return p_.circulates ? keys_and_values(rank) : 0; });
    gradients.begin(1);
    const Slice block_gradients = s_.scratch("part", most), boundary = s_.scratch("edges", 2 * channels_);
    boundary_ = {boundary.part(0, channels_), boundary.part(channels_, channels_), 1};
    make_gradient_accumulators();
    fill(s_, boundary_.state, 0.0F);
    pack_own();
    for (int i = 0; i < P; ++i) {
      const Slice held = blocks_.held();
      if (i + 1 < P) blocks_.hop();
      if (i > 1) gradients.hop();
      wait_if_exposed(s_, layer_);
      if (i == 0 && has_tokens()) set_own_gradients();
      if (i == 1) fill(s_, gradients.held(), 0.0F);
      if (i == 1 && i <= r) add_earlier_gradients(held, i, gradients.held());
      // The circulating sums may not have arrived yet: the gradients are computed apart from them.
      if (i > 1 && i <= r) {
        const Slice part = block_gradients.part(0, gradients.held().count);
        fill(s_, part, 0.0F);
        add_earlier_gradients(held, i, part);
        add(s_, gradients.held(), part);
      }
      wait_if_exposed(s_, layer_);
    }
    gradients.hop();
    wait_if_exposed(s_, layer_);
    if (has_tokens() && (p_.circulates || p_.has_accumulators))
      add_returned_gradients(p_.circulates ? block_in(gradients.held(), p_.shape) : RingBlock{});
    if (p_.is_gated()) add_later_gates();
  }

 private:
  bool has_tokens() const { return p_.shape.tokens > 0; }
  std::int64_t keys_and_values(int rank) const { return cut_.share(rank) * key_value_row(p_.shape); }
  std::int64_t most_keys_and_values() const { return cut_.tokens * key_value_row(p_.shape); }
  /// The parameters of steps on the block that comes with hop i.
  LeftProduct with_block(int i) const {
    LeftProduct p = p_;
    p.block_tokens = cut_.share((s_.rank() - i + s_.ranks()) % s_.ranks());
    return p;
  }
  /// The keys and values, or their gradients, in a slot with the block of these parameters.
  static RingBlock block_of(const LeftProduct& p, const Slice& slot) {
    LayerShape share = p.shape;
    share.tokens = p.block_tokens;
    return block_in(slot, share);
  }

  Slice accumulator(const char* name, const Slice& of) {
    return p_.has_accumulators ? s_.scratch(name, of.count) : Slice{};
  }

  void make_gradient_accumulators() {
    dq_accumulator_ = accumulator("q_rest", x_.dq);
    dk_accumulator_ = accumulator("k_rest", x_.dk);
    dv_accumulator_ = accumulator("v_rest", x_.dv);
    if (!p_.is_gated()) return;
    gate_terms_ = accumulator("z_rest", x_.dq);
    if (p_.circulates) block_dq_ = accumulator("block_x", x_.dq);
  }

  /// Makes the block that this rank sends, and scales this rank's queries and keys.
  void pack_own() {
    blocks_.begin();
    const RingBlock own = p_.circulates ? block_in(blocks_.held(), p_.shape) : RingBlock{};
    if (!has_tokens()) return fill(s_, own.decay, 1.0F);
    if (p_.circulates && !p_.is_gated()) s_.copy(own.k, x_.k);
    if (p_.is_gated() && (p_.circulates || p_.has_accumulators))
      record<LeftProductKeys>(s_, p_,
                              {.in = x_.inputs(),
                               .k = own.k,
                               .decay = own.decay,
                               .scaled = scaled_.scaled,
                               .decay_table = scaled_.decay_table});
    if (p_.circulates) s_.copy(own.v, x_.v);
  }

  void add_earlier_block(const Slice& held, int i) {
    const LeftProduct p = with_block(i);
    const RingBlock block = block_of(p, held);
    if (has_tokens() && p.block_tokens > 0)
      record<LeftProductBlock>(s_, p,
                               {.in = x_.inputs(),
                                .block = {block.k, block.v},
                                .between = between(i),
                                .rank = scaled_,
                                .o = p_.has_accumulators ? o_accumulator_ : x_.o,
                                .q_block = q_block_});
    extend(block.decay, i);
  }

  void set_own_gradients() {
    record<LeftProductOwnGradients>(s_, p_,
                                    {.in = x_.inputs(),
                                     .d_o = x_.d_o,
                                     .rank = scaled_,
                                     .out = x_.gradients(),
                                     .dq_accumulator = dq_accumulator_,
                                     .dk_accumulator = dk_accumulator_,
                                     .dv_accumulator = dv_accumulator_,
                                     .gate_terms = gate_terms_});
  }

  /// Adds the gradients of the block in `held`, which has come by hop i, to `into`, and the
  /// gradients of this rank's queries and gates.
  void add_earlier_gradients(const Slice& held, int i, const Slice& into) {
    const LeftProduct p = with_block(i);
    const RingBlock block = block_of(p, held), out = block_of(p, into);
    if (has_tokens() && p.block_tokens > 0)
      record<LeftProductBlockGradients>(s_, p,
                                        {.in = x_.inputs(),
                                         .d_o = x_.d_o,
                                         .block = {block.k, block.v},
                                         .between = between(i),
                                         .rank = scaled_,
                                         .dq = x_.dq,
                                         .dg = x_.dg,
                                         .boundary_gate_sum = boundary_.state,
                                         .block_dk = out.k,
                                         .block_dv = out.v,
                                         .dq_accumulator = dq_accumulator_,
                                         .gate_terms = gate_terms_,
                                         .q_block = q_block_,
                                         .block_dq = block_dq_});
    extend(block.decay, i);
  }

  /// Adds the returned gradients of this rank's keys and values, and the accumulators.
  void add_returned_gradients(const RingBlock& returned) {
    record<LeftProductHomeGradients>(s_, p_,
                                     {.in = x_.inputs(),
                                      .scaled = scaled_.scaled,
                                      .dv_accumulator = dv_accumulator_,
                                      .out = x_.gradients(),
                                      .boundary_gate_sum = boundary_.state,
                                      .returned_dk = returned.k,
                                      .returned_dv = returned.v,
                                      .dq_accumulator = dq_accumulator_,
                                      .dk_accumulator = dk_accumulator_,
                                      .gate_terms = gate_terms_,
                                      .decay_table = scaled_.decay_table});
  }

  /// Adds to dg the boundary gate sums of all later ranks, and the suffix sums of the accumulated
  /// gate terms.
  void add_later_gates() {
    const Slice later = sum_of_later();
    if (!has_tokens() || (later.empty() && !p_.has_accumulators)) return;
    record<LeftProductEdgeGradients>(
        s_, {p_, later.empty()},
        {.later = later, .gate_terms = gate_terms_, .decay_table = scaled_.decay_table, .dg = x_.dg});
  }

  /// The boundary gate sums of later ranks, added by an exclusive scan of states whose decay is
  /// one. Empty on the last rank.
  Slice sum_of_later() {
    if (!p_.circulates) return {};
    const Slice later = s_.scratch("later", channels_);
    fill(s_, boundary_.decay, 1.0F);
    {
      const Reversed reversed(s_);
      embed(s_, scan, {boundary_, later, 1});
    }
    wait_if_exposed(s_, layer_);
    return s_.rank() + 1 < s_.ranks() ? later : Slice{};
  }

  /// The decay of the ranks between this one and the owner of the block of hop i; empty if there is
  /// none.
  Slice between(int i) const { return i > 1 ? between_ : Slice{}; }

  /// Multiplies `between_` by the decay of the block of hop i, if another earlier block follows.
  void extend(const Slice& decay, int i) {
    if (!has_tokens() || i == s_.rank() || decay.empty()) return;
    if (i == 1) return s_.copy(between_, decay);
    record<ExtendDecay>(s_, p_, {.between = between_, .decay = decay});
  }

  Schedule& s_;
  const Layer& layer_;
  const LayerTensors& x_;
  LeftProduct p_;
  Cut cut_;
  std::int64_t channels_;        // heads * d_k, the numbers of one rank's decay; 0 without gates
  std::int64_t decay_elements_;  // of a decay, which is f32, in a slice of the tensors' type
  Ring blocks_;
  Slice between_;
  Map boundary_;  // its state is the boundary gate sum of this rank
  ScaledRank<Recorded> scaled_;
  Slice q_block_, block_dq_, o_accumulator_, dq_accumulator_, dk_accumulator_, dv_accumulator_, gate_terms_;
};

}  // namespace baton
