// SPDX-License-Identifier: Apache-2.0
// Ulysses: each rank computes some heads over the whole sequence, with linear or softmax attention.
//
//   q, k, v, g, beta, a, b of the own heads = all-to-all of each                 (heads for tokens)
//   o = attention of one rank over the whole sequence; all-to-all of o             (and back)
//   backward: q, k, v, g, and out, lse of softmax, are kept from the forward pass
//     all-to-all of d_o; gradients over the whole sequence; all-to-all of dq, dk, dv, dg
//
// The paper exchanges one tensor after the other before it computes. Here those of a pass are under
// way together, and `exposed` waits for each. A causal mask is balanced: each rank has all tokens.
// Cost: (P-1)/P of each tensor a rank, in the tensors' type; 2 hops a pass. Heads must be a
// multiple of P. Of fewer heads of keys than ranks, each is repeated on the ranks that share it.
// One head of latent keys so costs (P-1)*tokens*d_k elements, as if it were gathered. Its widths
// make q and o wide: tokens*heads*(d_k+d_v)*(P-1)/P elements.
// Source: DeepSpeed-Ulysses, arXiv 2309.14509; deepspeed/sequence/layer.py.
#include <numeric>
#include <optional>
#include <vector>

#include "sp_methods/passes/convolution.hpp"
#include "sp_methods/passes/grouped_heads.hpp"
#include "sp_methods/passes/heads.hpp"
#include "sp_methods/passes/make_pass.hpp"
#include "sp_methods/passes/softmax_steps.hpp"

namespace baton {
namespace {

class LocalSoftmax : public GatheredAttention {
 public:
  LocalSoftmax(Schedule& s, const Layer& layer) : s_(s), layer_(layer), steps_(s, layer, contiguous) {}

  void forward(const LayerTensors& x) override {
    result_ = steps_.result_of_one_block(x.o);
    steps_.attend(result_, x.q, {x.k, x.v, {}}, own_);
    set(s_, x.o, result_.out);
  }

  void backward(const LayerTensors& x) override {
    if (layer_.pass == Pass::backward) result_ = steps_.result(x.o);
    const QuerySide queries{x.q, x.d_o, result_.lse, s_.scratch("delta", steps_.rows())};
    steps_.set_delta(queries.delta, x.d_o, result_.out);
    const bool at_once = steps_.part_dtype() == x.dq.dtype;
    const GradientSums sums = at_once ? GradientSums{x.dq, {x.dk, x.dv, {}}} : sums_of_gradients(s_, x);
    steps_.begin_gradients(true, sums.dq, sums.block, queries, {x.k, x.v, {}}, own_);
    set_gradients(s_, x, sums);
  }

 private:
  static constexpr RankPair own_{0, 0};

  Schedule& s_;
  const Layer& layer_;
  SoftmaxSteps steps_;
  PartialOutput result_;
};

class LocalLinear : public GatheredAttention {
 public:
  LocalLinear(Schedule& s, const Layer& layer) : s_(s), layer_(layer) {}

  void forward(const LayerTensors& x) override {
    prepare(x);
    run(heads_->inside(convolved(x)), false);
  }
  void backward(const LayerTensors& x) override {
    if (layer_.pass == Pass::backward) prepare(x);
    run(heads_->inside(convolved(x)), true);
    heads_->record_backward(convolved(x));
    if (convolution_) convolution_->record_backward(x);
  }

 private:
  /// Records the convolution of the whole sequence, in which no row comes in from other ranks, and
  /// then all heads of q and k.
  void prepare(const LayerTensors& x) {
    if (layer_.share.conv > 0) convolution_.emplace(s_, layer_, x, Layout::contiguous, true);
    heads_.emplace(s_, layer_, convolved(x), Layout::contiguous);
  }
  LayerTensors convolved(const LayerTensors& x) { return convolution_ ? convolution_->inside(x) : x; }

  /// Records a pass over the whole sequence, in which no state comes in from other ranks.
  void run(const LayerTensors& x, bool is_backward) {
    const LayerShape& share = layer_.share;
    const Slice unused = s_.scratch("prefix", share.heads * share.d_k * share.d_v);
    const PassInputs inputs{.layer = heads_->layer(),
                            .tensors = x,
                            .prefix = unused,
                            .is_backward = is_backward,
                            .is_first = true,
                            .is_last = true};
    const auto pass = make_pass(s_, inputs);
    pass->record_map(0);
    pass->record_overlappable();
    pass->record_outputs(0);
  }

  Schedule& s_;
  const Layer& layer_;
  std::optional<Convolution> convolution_;
  std::optional<GroupedHeads> heads_;
};

template <class Local>
void ulysses(Schedule& s, const Layer& layer, const LayerTensors& x) {
  std::vector<int> all(s.ranks());
  std::iota(all.begin(), all.end(), 0);
  HeadExchange heads(s, layer, all);
  const Layer whole = heads.whole();
  Local local(s, whole);
  record_passes(s, layer, heads, local, x);
}

std::optional<Cost> claim(const Layer& layer, const Split& split) {
  if (split.ranks == 1) return Cost{};
  const int passes = layer.pass == Pass::both ? 2 : 1;
  return Cost{head_exchange_bytes(layer, split.ranks), passes * head_exchange_hops(layer)};
}

TensorPart kept(int rank, int ranks, const LayerShape& share, const Shares& shares) {
  const std::int64_t tokens = Cut::of(contiguous, ranks, share.tokens, shares).sequence();
  return gathered_part(share, ranks, rank, Positions::run(0, tokens), tokens);
}

Refusal unsupported(const Layer& layer, int ranks) {
  if (Refusal reason = unsupported_in_a_ring(layer)) return reason;
  return unsupported_heads(layer, ranks);
}

const RegisteredMethod linear({
    .name = "ulysses",
    .summary = "all-to-all of heads for tokens, the whole sequence on each rank, and back",
    .attention = Attention::linear,
    .rules = {Rule::decay, Rule::delta, Rule::low_rank},
    .packs = true,
    .shares_unequally = true,
    .convolves = true,
    .groups_heads = true,
    .build = ulysses<LocalLinear>,
    .claim = claim,
    .unsupported = unsupported,
    .kept = kept,
});

const RegisteredMethod softmax({
    .name = "ulysses_softmax",
    .summary = "all-to-all of heads for tokens, softmax over the whole sequence, and back",
    .attention = Attention::softmax,
    .packs = true,
    .shares_unequally = true,
    .build = ulysses<LocalSoftmax>,
    .claim = claim,
    .unsupported = [](const Layer& layer, int ranks) -> Refusal {
      if (Refusal reason = unsupported_softmax(layer, contiguous)) return reason;
      return unsupported_heads(layer, ranks);
    },
    .kept = kept,
});

}  // namespace
}  // namespace baton
