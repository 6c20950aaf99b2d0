// SPDX-License-Identifier: Apache-2.0
// Gated linear attention of ranks with zigzag tokens, as causal softmax wants them: rank r has the
// pieces r and 2P-1-r of 2P.
//
//   for both halves of a rank's tokens: local states and the half's map
//   exchange the maps of the first halves: the scan's text, from rank 0 on
//   at the last rank: the state behind its first half is where its second half begins
//   exchange the maps of the second halves: the same text over the reversed ranks
//   for both halves: outputs, with the state that came in
//
// The backward pass swaps the halves. A chain so has 2P pieces.
// Cost: twice that of the scan, in bytes and in hops. A stack of linear and softmax layers pays it
// where the tokens of all lie zigzag.
// Source: "LASP-2", arXiv 2502.07563, section 3.4, has hybrid stacks of contiguous tokens; the
// states are exchanged as in "ZeCO", arXiv 2507.01004, and LASP-2. Two parts a rank are in
// fla-org/flash-linear-attention, pull request 1221.
#include <memory>
#include <optional>
#include <string>

#include "collectives/collective.hpp"
#include "sp_methods/passes/make_pass.hpp"
#include "sp_methods/passes/state_scan.hpp"

namespace baton {
namespace {

Slice half_of(const Slice& tensor, int half) {
  return tensor.part(half * tensor.count / 2, tensor.count / 2);
}

/// One pass over both halves of a rank's tokens. The states of `first_` travel from rank 0 on, and
/// the states of `second_` towards rank 0.
class ZigzagPass {
 public:
  /// Makes a pass of tensors x. `half` is the layer of half the tokens, and `prefixes` has the
  /// states before both halves.
  ZigzagPass(Schedule& s, const Layer& half, const LayerTensors& x, const Slice& prefixes, bool is_backward)
      : s_(s),
        half_(half),
        first_(pass_of(x, prefixes, is_backward, is_backward ? 1 : 0)),
        second_(pass_of(x, prefixes, is_backward, is_backward ? 0 : 1)) {}

  void run(const std::string& scan) {
    first_->record_local_states(0);
    wait_if_exposed();
    exchange(*first_, scan);
    wait_if_exposed();
    second_->record_local_states(0);
    wait_if_exposed();
    const Map behind = s_.rank() == s_.ranks() - 1 ? state_behind() : Map{};
    {
      const Reversed reversed(s_);
      exchange(*second_, scan);
    }
    if (!behind.state.empty()) s_.copy(second_->incoming(0).state, behind.state);
    wait_if_exposed();
    for (LinearPass* pass : {first_.get(), second_.get()}) pass->record_overlappable();
    for (LinearPass* pass : {first_.get(), second_.get()}) pass->record_outputs(0);
  }

 private:
  std::unique_ptr<LinearPass> pass_of(const LayerTensors& x, const Slice& prefixes, bool is_backward,
                                      int half) {
    const PassInputs inputs{
        .layer = half_,
        .tensors = x.rows(half * half_.share.tokens, half_.share.tokens, 2 * half_.share.tokens),
        .prefix = half_of(prefixes, half),
        .is_backward = is_backward,
        .is_first = s_.rank() == 0 && half == 0,
        .is_last = s_.rank() == 0 && half == 1};
    return make_pass(s_, inputs);
  }

  void wait_if_exposed() {
    if (half_.mode == Mode::exposed) s_.fence();
  }

  void exchange(const LinearPass& pass, const std::string& scan) {
    embed(s_, scan, {pass.map(0), pass.incoming(0).state, half_.blocks});
  }

  /// The state behind the first half of the last rank, where its second half begins. The map of the
  /// second half then starts from this state, and not from zero.
  Map state_behind() {
    const Map& own = first_->map(0);
    const Map behind = s_.scratch_map("behind", own).only_state();
    if (s_.ranks() > 1)
      s_.combine(behind, first_->incoming(0).only_state(), own);
    else
      s_.copy(behind, own.only_state());
    const Map& next = second_->map(0);
    s_.combine(next.only_state(), behind, next);
    return behind;
  }

  Schedule& s_;
  const Layer& half_;
  std::unique_ptr<LinearPass> first_, second_;
};

void build(Schedule& s, const Layer& layer, const LayerTensors& x, const std::string& own_scan) {
  const std::string scan = layer.scan.empty() ? own_scan : layer.scan;
  Layer half = layer;
  half.share.tokens /= 2;
  const Slice prefixes =
      saved_for_backward(s, layer, "prefix", 2 * layer.share.heads * layer.share.d_k * layer.share.d_v);
  if (layer.pass != Pass::backward) ZigzagPass(s, half, x, prefixes, false).run(scan);
  if (layer.pass == Pass::both) s.fence();  // the output comes before its gradient
  if (layer.pass != Pass::forward) ZigzagPass(s, half, x, prefixes, true).run(scan);
}

std::optional<Cost> claim(const Layer& layer, const Split& split, const std::string& own_scan) {
  if (split.ranks == 1) return Cost{};
  // On a last node that is partly filled the longest chain of one scan may not end where the other
  // begins.
  if (split.ranks_per_node > 0 && split.ranks % split.ranks_per_node != 0) return std::nullopt;
  const std::string scan = layer.scan.empty() ? own_scan : layer.scan;
  const Shape shape{layer.share.heads, layer.share.d_k, layer.share.d_v, layer.share.tokens};
  const auto once = claimed_scans(scan, shape, split, {Direction::forward, Direction::reverse});
  if (!once) return std::nullopt;
  const int passes = layer.pass == Pass::both ? 2 : 1;
  return Cost{passes * once->bytes, passes * (once->hops[0] + once->hops[1])};
}

Refusal unsupported(const Layer& layer, int) {
  if (Refusal reason = layer.kernels.unsupported(layer.dtype, {layer.share.d_k, layer.share.d_v}))
    return reason;
  if (layer.share.tokens % 2 != 0)
    return "zigzag gives each rank two equal pieces, and " + std::to_string(layer.share.tokens) +
           " tokens a rank are odd";
  if (layer.mode == Mode::compute_only)
    return "mode compute_only: a rank's two pieces of zigzag tokens do not follow one another";
  if (layer.groups > 1) return "zigzag linear layers exchange all heads at once: use --groups 1";
  return {};
}

RegisteredMethod method(const std::string& name, const std::string& summary, const std::string& scan) {
  return RegisteredMethod({
      .name = name,
      .summary = summary,
      .attention = Attention::linear,
      .scan = scan,
      .build = [scan](Schedule& s, const Layer& layer, const LayerTensors& x) { build(s, layer, x, scan); },
      .claim = [scan](const Layer& layer, const Split& split) { return claim(layer, split, scan); },
      .unsupported = unsupported,
      .layout = Layout::zigzag,
  });
}

const RegisteredMethod registered[]{
    method("zeco_zigzag", "All-Scan down the ranks and up again, zigzag tokens", "all_scan"),
    method("lasp2_zigzag", "all-gather of the maps of both halves, zigzag tokens", "all_gather_scan"),
};

}  // namespace
}  // namespace baton
