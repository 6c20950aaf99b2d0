// SPDX-License-Identifier: Apache-2.0
// Causal attention of the whole sequence on one rank, which walks it stretch by stretch: the line
// that speed-ups are measured from, in time and in memory.
//
//   linear, for each stretch:  o, from its tokens and the state before it;  keep the state behind
//     backward, from the last stretch on:  its gradients, from the state before it and from the
//     gradient of the state behind it, which is carried on;  all else is made again
//   softmax, for each stretch of queries:  (out, lse) = attention over all keys up to its end
//     backward:  dq of the stretch, and what it adds to dk and dv of these keys
//
// The first rank has the tokens of all ranks, and the others have none and wait. A stretch is a
// rank's share, or, where that is longer, whole chunks of 2048 tokens at most, and of a 1024th of
// the sequence from 2M tokens on.
// Cost: no messages. Memory: the tensors; one state a stretch, or out and lse in f32; the
// temporaries of one stretch, and f32 sums of dk and dv beside narrower ones of softmax attention.
// Source: "SeCO", arXiv 2505.16710 (chunk by chunk, activations of one chunk at a time);
// "Mini-Sequence Transformer", arXiv 2407.15892.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "sp_methods/passes/convolution.hpp"
#include "sp_methods/passes/make_pass.hpp"
#include "sp_methods/passes/softmax_steps.hpp"

namespace baton {
namespace {

/// The cut of the whole sequence into stretches, the last of which may be shorter.
struct Stretches {
  std::int64_t tokens = 0;  ///< Tokens of the sequence.
  std::int64_t most = 0;    ///< The most tokens of a stretch.
  static constexpr std::int64_t least_limit = 2048, most_stretches = 1024;

  Stretches(const LayerShape& share, int ranks) : tokens(share.tokens * ranks), most(share.tokens) {
    const std::int64_t limit = std::max(least_limit, tokens / most_stretches);
    if (most > limit) most = std::max(share.chunk, limit / share.chunk * share.chunk);
  }
  int count() const { return static_cast<int>((tokens + most - 1) / most); }
  std::int64_t first(int i) const { return i * most; }
  std::int64_t end(int i) const { return std::min(first(i) + most, tokens); }
  std::int64_t size(int i) const { return end(i) - first(i); }
};

/// Gated linear attention of one stretch after another, with a carried state.
class LinearWalk {
 public:
  LinearWalk(Schedule& s, const Layer& layer, const LayerTensors& x)
      : s_(s),
        x_(x),
        cut_(layer.share, s.ranks()),
        state_(layer.share.heads * layer.share.d_k * layer.share.d_v),
        row_(layer.share.d_v),
        remakes_(layer.pass == Pass::backward),
        behind_(s.scratch("states_behind", std::max(1, cut_.count() - 1) * state_)),
        suffix_(s.scratch("suffix", layer.pass == Pass::forward ? 0 : state_)),
        layers_{layer, layer} {
    for (Layer& one : layers_) one.groups = 1;  // groups cut an exchange, and there is none
    layers_[0].share.tokens = cut_.size(0);
    layers_[1].share.tokens = cut_.size(cut_.count() - 1);
  }

  void forward() { walk(true); }

  void backward() {
    if (remakes_) walk(false);
    const int last = cut_.count() - 1;
    for (int i = last; i >= 0; --i) {
      LinearPass& pass = pass_of(i, true);
      pass.record_map(0);
      pass.record_overlappable();
      pass.record_outputs(0);
      if (i > 0) carry(suffix_, i == last ? Slice{} : suffix_, pass.map(0));
    }
  }

 private:
  /// Records the states behind all stretches but the last, and the outputs if `with_outputs`.
  void walk(bool with_outputs) {
    const int last = cut_.count() - 1;
    for (int i = 0; i < (with_outputs ? last + 1 : last); ++i) {
      LinearPass& pass = pass_of(i, false);
      pass.record_map(0);
      if (with_outputs) pass.record_overlappable();
      if (with_outputs) pass.record_outputs(0);
      if (i < last) carry(behind(i), i == 0 ? Slice{} : behind(i - 1), pass.map(0));
    }
  }

  /// Records into = map(before). An empty `before` means zero.
  void carry(const Slice& into, const Slice& before, const Map& map) {
    if (before.empty()) return s_.copy(into, map.state);
    s_.combine({{}, into, row_}, {{}, before, row_}, map);
  }

  Slice behind(int i) const { return behind_.part(i * state_, state_); }
  /// The pass over stretch i. Stretches of equal size share its memory.
  LinearPass& pass_of(int i, bool is_backward) {
    const bool is_short = cut_.size(i) != cut_.size(0);
    const Layer& layer = layers_[is_short ? 1 : 0];
    const PassInputs inputs{.layer = layer,
                            .tensors = x_.rows(cut_.first(i), cut_.size(i), cut_.tokens),
                            .prefix = behind(std::max(0, i - 1)),
                            .suffix = suffix_,
                            .is_backward = is_backward,
                            .is_first = i == 0,
                            .is_last = i == cut_.count() - 1};
    std::unique_ptr<LinearPass>& pass = passes_[is_backward ? 1 : 0][is_short ? 1 : 0];
    if (pass)
      pass->move_to(inputs);
    else
      pass = make_pass(s_, inputs);
    return *pass;
  }

  Schedule& s_;
  const LayerTensors& x_;
  Stretches cut_;
  std::int64_t state_;           // elements of a state
  std::int64_t row_;             // and of its rows
  bool remakes_;                 // no forward pass has left its states
  Slice behind_;                 // the states behind all stretches but the last
  Slice suffix_;                 // the gradient of the state behind a stretch
  std::array<Layer, 2> layers_;  // of a stretch, and of the last one
  std::array<std::array<std::unique_ptr<LinearPass>, 2>, 2> passes_;  // by direction and layer
};

/// Softmax attention of stretches of queries over keys that stay where they are.
class SoftmaxWalk {
 public:
  SoftmaxWalk(Schedule& s, const Layer& layer, const LayerTensors& x)
      : s_(s),
        x_(x),
        cut_(layer.share, s.ranks()),
        whole_(layer_of_all(layer, cut_.tokens)),
        steps_(s, whole_, contiguous),
        result_(steps_.result(x.o)) {}

  void forward() {
    for (int i = 0; i < cut_.count(); ++i) {
      const Slice out = of_queries(result_.out, i);
      record<SoftmaxBlock>(s_, shape(i),
                           {.in = {of_queries(x_.q, i), of_keys(x_.k, i), of_keys(x_.v, i)},
                            .out = out,
                            .lse = of_queries(result_.lse, i)});
      set(s_, of_queries(x_.o, i), out);
    }
  }

  void backward() {
    const Slice delta = s_.scratch("delta", cut_.most * whole_.share.heads);
    const bool is_narrow = x_.dq.dtype != Dtype::f32;
    const Slice sums = s_.scratch("dq_sums", is_narrow ? of_queries(x_.dq, 0).count : 0);
    const RingBlock into{sums_of(s_, x_.dk, "dk_sums"), sums_of(s_, x_.dv, "dv_sums"), {}};
    for (const Slice& slice : {into.k, into.v}) fill(s_, slice, 0.0F);
    for (int i = 0; i < cut_.count(); ++i) {
      const Slice own = of_queries(x_.dq, i), dq = is_narrow ? sums.part(0, own.count) : own;
      const Slice lse = of_queries(result_.lse, i), d_o = of_queries(x_.d_o, i);
      const Slice own_delta = delta.part(0, lse.count);
      record<SoftmaxDelta>(s_, shape(i), {.d_o = d_o, .out = of_queries(result_.out, i), .delta = own_delta});
      fill(s_, dq, 0.0F);
      record<SoftmaxBlockGradients>(s_, {shape(i), {}, {}},
                                    {.in = {of_queries(x_.q, i), of_keys(x_.k, i), of_keys(x_.v, i)},
                                     .d_o = d_o,
                                     .lse = lse,
                                     .delta = own_delta,
                                     .dq = dq,
                                     .dk = of_keys(into.k, i),
                                     .dv = of_keys(into.v, i)});
      set(s_, own, dq);
    }
    set(s_, x_.dk, into.k);
    set(s_, x_.dv, into.v);
  }

 private:
  static Layer layer_of_all(Layer layer, std::int64_t tokens) {
    layer.share.tokens = tokens;
    return layer;
  }

  /// Sizes of attention of the queries of stretch i over the keys up to the last that they see.
  SoftmaxShape shape(int i) const {
    SoftmaxShape shape = steps_.shape({0, 0});
    shape.q_tokens = cut_.size(i);
    shape.q_positions = Positions::run(cut_.first(i), cut_.size(i));
    shape.k_tokens = shape.k_positions.split = shape.visible(shape.q_tokens - 1);
    return shape;
  }

  /// The rows of stretch i's queries in a tensor of the whole sequence.
  Slice of_queries(const Slice& all, int i) const {
    const std::int64_t row = all.count / cut_.tokens;
    return all.part(cut_.first(i) * row, cut_.size(i) * row);
  }
  /// The rows of the keys that the queries of stretch i see in a tensor of the whole sequence.
  Slice of_keys(const Slice& all, int i) const {
    return all.part(0, shape(i).k_tokens * (all.count / cut_.tokens));
  }

  Schedule& s_;
  const LayerTensors& x_;
  Stretches cut_;
  Layer whole_;
  SoftmaxSteps steps_;
  PartialOutput result_;  // of the whole sequence
};

template <class Walk>
void build(Schedule& s, const Layer& layer, const LayerTensors& x) {
  if (s.rank() > 0) return;
  Walk walk(s, layer, x);
  run_passes(s, layer, walk);
}

Refusal unsupported(const Layer& layer, Attention attention) {
  if (layer.mode == Mode::compute_only)
    return "one rank has the whole sequence: there is no exchange to leave out";
  Layer whole = layer;
  whole.groups = 1;
  if (attention == Attention::softmax) return unsupported_softmax(whole, contiguous);
  return layer.kernels.unsupported(layer.dtype, {layer.share.d_k, layer.share.d_v});
}

template <class Walk>
RegisteredMethod method(const std::string& name, const std::string& summary, Attention attention) {
  return RegisteredMethod({
      .name = name,
      .summary = summary,
      .attention = attention,
      .packs = attention == Attention::softmax,
      .convolves = attention == Attention::linear,
      .groups_heads = attention == Attention::linear,
      .scan = {},
      .build = convolved(build<Walk>, Layout::contiguous, Sequence::whole),
      .claim = [](const Layer&, const Split&) { return Cost{}; },
      .unsupported = [attention](const Layer& layer, int) { return unsupported(layer, attention); },
      .sequence = Sequence::whole,
      .positions = [](int, int ranks, std::int64_t tokens) { return Positions::run(0, ranks * tokens); },
  });
}

const RegisteredMethod registered[]{
    method<LinearWalk>("chunkwise_local", "one rank walks the whole sequence with a carried state",
                       Attention::linear),
    method<SoftmaxWalk>("chunkwise_local_softmax",
                        "one rank walks the queries of the whole sequence over all keys before them",
                        Attention::softmax),
};

}  // namespace
}  // namespace baton
