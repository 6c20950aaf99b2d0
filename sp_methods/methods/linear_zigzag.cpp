// SPDX-License-Identifier: Apache-2.0
// Linear attention of ranks with zigzag tokens, as causal softmax wants them: rank r has the pieces
// r and 2P-1-r of 2P. Gated, with a delta rule or with a low-rank one.
//
//   for both halves of a rank's tokens: local states and the half's map
//   exchange the maps of the first halves: the scan's text, from rank 0 on
//   at the last rank: the state behind its first half is where its second half begins
//   exchange the maps of the second halves: the same text over the reversed ranks
//   for both halves: outputs, with the state that came in
//
//   once: one all-gather of the maps of both halves, then every rank folds those before its own
//   relay: receive, all work of a half, send: a chain of 2P halves
//
// The backward pass swaps the halves, and matrices of maps are kept for it (matrix_pass.hpp).
// Cost: twice that of the scan, in bytes and in hops; once, the bytes of two gathers and the hops
// of one, with up to 2P-2 local combines. A stack of linear and softmax layers pays it where the
// tokens of all lie zigzag.
// Source: "LASP-2", arXiv 2502.07563, section 3.4, has hybrid stacks of contiguous tokens; the
// states are exchanged as in "ZeCO", arXiv 2507.01004, and LASP-2. One gather of two parts a rank
// is in fla-org/flash-linear-attention, pull request 1221; the relay in alibaba/rtp-llm, pull
// requests 1299 and 1401.
#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "collectives/collective.hpp"
#include "sp_methods/passes/convolution.hpp"
#include "sp_methods/passes/make_pass.hpp"
#include "sp_methods/passes/state_scan.hpp"

namespace baton {
namespace {

/// How the maps of a pass travel: by two scans, by one gather, or from half to half after all work.
enum class Exchange { scans, once, relay };

struct Variant {
  Exchange exchange = Exchange::scans;
  std::string collective;  ///< The scan or the gather.

  std::string scan_of(const Layer& layer) const {
    if (exchange == Exchange::relay) return serial_scan;
    return exchange == Exchange::once || layer.scan.empty() ? collective : layer.scan;
  }
};

/// Part `half` of memory that has one for each half.
Slice half_of(const Slice& both, int half) { return both.block(half, 2); }

/// The halves of a rank's tokens, and the memory that their passes share.
struct Halves {
  std::array<Layer, 2> layers;
  std::array<LayerTensors, 2> tensors;
  Slice prefixes;       ///< The states before both.
  Slice maps = {};      ///< Memory for the maps of both; that of the passes if empty.
  Slice matrices = {};  ///< The matrices of both, which a schedule of the gradient alone is given.
  LayerTensors whole;   ///< The tensors of the rank, whose states are those of the sequence.
};

Halves halves_of(const Schedule& s, const Layer& layer, const LayerTensors& x) {
  const Cut cut = cut_of(layer, Layout::zigzag, s.ranks());
  const Positions at = cut.positions(s.rank());
  Halves halves{.layers = {layer, layer}, .tensors = {}, .prefixes = {}, .whole = x};
  for (const int half : {0, 1}) {
    halves.layers[half].share.tokens = cut.piece(s.rank(), half);
    halves.layers[half].cut_documents(half == 0 ? at.first : at.second);
    halves.tensors[half] =
        x.rows(half == 0 ? 0 : cut.piece(s.rank(), 0), cut.piece(s.rank(), half), layer.share.tokens);
  }
  return halves;
}

/// The parts of the maps of both halves that a pass reads, the half that it exchanges first before
/// the other. The last rank joins them.
std::array<MapUse, 2> use_of_maps(const Schedule& s, const Layer& layer, const Variant& variant) {
  constexpr MapUse all{true, true}, state{false, true};
  if (!has_matrices(layer.rule)) return {};
  if (s.rank() == 0 && layer.states != States::none) return {all, all};
  if (s.ranks() == 1) return {state, MapUse{}};
  if (variant.exchange == Exchange::once || s.rank() == s.ranks() - 1) return {all, all};
  const std::string scan = variant.scan_of(layer);
  return {map_use(s, scan, layer, Direction::forward), map_use(s, scan, layer, Direction::reverse)};
}

/// One pass over both halves of a rank's tokens. The states of `first_` travel from rank 0 on, and
/// the states of `second_` towards rank 0.
class ZigzagPass {
 public:
  /// Makes a pass of `halves`. `use` has the parts of the maps of `first_` and `second_` that it
  /// makes, and `forward` is the forward pass of the same schedule, or null.
  ZigzagPass(Schedule& s, const Halves& halves, const std::array<MapUse, 2>& use, const Variant& variant,
             bool is_backward, const ZigzagPass* forward)
      : s_(s),
        halves_(halves),
        variant_(variant),
        is_backward_(is_backward),
        first_(pass_of(is_backward ? 1 : 0, use[0], forward == nullptr ? nullptr : forward->second_.get())),
        second_(pass_of(is_backward ? 0 : 1, use[1], forward == nullptr ? nullptr : forward->first_.get())) {}

  void run() {
    if (variant_.exchange == Exchange::relay)
      run_relay();
    else if (variant_.exchange == Exchange::once)
      run_once(variant_.collective);
    else
      run_scans(variant_.scan_of(layer()));
    second_->record_end(is_backward_ ? halves_.whole.d_initial_state : halves_.whole.final_state);
    if (variant_.exchange == Exchange::relay) return;  // which has the outputs
    for (LinearPass* pass : {first_.get(), second_.get()}) pass->record_overlappable();
    for (LinearPass* pass : {first_.get(), second_.get()}) pass->record_outputs(0);
  }

 private:
  std::unique_ptr<LinearPass> pass_of(int half, const MapUse& use, const LinearPass* forward) {
    return make_pass(s_, {.layer = halves_.layers[half],
                          .tensors = halves_.tensors[half],
                          .prefix = half_of(halves_.prefixes, half),
                          .map = half_of(halves_.maps, half),
                          .matrices = half_of(halves_.matrices, half),
                          .initial_state = half == 0 ? halves_.whole.initial_state : Slice{},
                          .d_final_state = half == 1 ? halves_.whole.d_final_state : Slice{},
                          .is_backward = is_backward_,
                          .is_first = s_.rank() == 0 && half == 0,
                          .is_last = s_.rank() == 0 && half == 1,
                          .forward = forward,
                          .makes = use,
                          .works_ahead = variant_.exchange != Exchange::relay});
  }

  const Layer& layer() const { return halves_.layers[0]; }

  void wait_if_exposed() {
    if (layer().mode == Mode::exposed) s_.fence();
  }

  void run_scans(const std::string& scan) {
    first_->record_map(0);
    wait_if_exposed();
    exchange(*first_, scan);
    wait_if_exposed();
    second_->record_map(0);
    wait_if_exposed();
    const Map behind = s_.rank() == s_.ranks() - 1 ? join() : Map{};
    {
      const Reversed reversed(s_);
      exchange(*second_, scan);
    }
    if (!behind.state.empty()) s_.copy(second_->incoming(0).state, behind.state);
    wait_if_exposed();
  }

  void exchange(const LinearPass& pass, const std::string& scan) {
    embed(s_, scan, {pass.map(0), pass.incoming(0).state, layer().blocks});
  }

  /// The state behind the first half of the last rank, where its second half begins. The map of the
  /// second half then starts from this state, and not from zero.
  Map join() {
    const Map behind = state_behind(s_, *first_, 0), next = second_->map(0);
    if (s_.ranks() > 1) s_.combine(next.only_state(), behind, next);
    return behind;
  }

  void run_once(const std::string& gather) {
    first_->record_map(0);
    second_->record_map(0);
    wait_if_exposed();
    const Slice maps = s_.ranks() == 1 ? halves_.maps : s_.scratch("maps", s_.ranks() * halves_.maps.count);
    if (s_.ranks() > 1) embed(s_, gather, {{{}, halves_.maps, 1}, maps, 1});
    fold(maps);
    wait_if_exposed();
  }

  /// Sets the states before both halves of this rank from the maps of all halves before them.
  void fold(const Slice& maps) {
    const int P = s_.ranks(), r = s_.rank(), last = 2 * P - 1 - r;
    const auto map = [&](int i) {
      const Slice of_rank = maps.block(std::min(i, 2 * P - 1 - i), P);
      return map_in(half_of(of_rank, (i < P) == is_backward_ ? 1 : 0), first_->map(0));
    };
    Map before = map(0).only_state();
    if (r == 1 || last == 1) s_.copy((r == 1 ? first_ : second_)->incoming(0).state, before.state);
    for (int i = 2; i <= last; ++i) {
      const Map& into = (i <= r ? first_ : second_)->incoming(0);
      s_.combine(into, before, map(i - 1));
      before = into;
    }
  }

  void run_relay() {
    record_link(s_, *first_);
    if (s_.rank() == s_.ranks() - 1) s_.copy(second_->incoming(0).state, state_behind(s_, *first_, 0).state);
    const Reversed reversed(s_);
    record_link(s_, *second_);
  }

  Schedule& s_;
  const Halves& halves_;
  const Variant& variant_;
  bool is_backward_;
  std::unique_ptr<LinearPass> first_, second_;
};

void build(Schedule& s, const Layer& layer, const LayerTensors& x, const Variant& variant) {
  const bool is_forward = layer.pass != Pass::backward, is_backward = layer.pass != Pass::forward;
  const Shape maps = shape_of_maps(layer, 2 * layer.share.heads);
  Halves halves = halves_of(s, layer, x);
  halves.prefixes = saved_for_backward(s, layer, "prefix", maps.state_elements());
  if (variant.exchange == Exchange::once) halves.maps = s.scratch("own_maps", maps.map_elements());
  const std::array<MapUse, 2> use = use_of_maps(s, layer, variant);
  std::array<MapUse, 2> ahead = use;
  for (const int i : {0, 1}) ahead[i].matrix = ahead[i].matrix || (is_backward && use[1 - i].matrix);
  if (!is_forward && (use[0].matrix || use[1].matrix))
    halves.matrices = saved_for_backward(s, layer, "map_matrix", maps.decay_elements());
  std::optional<ZigzagPass> forward;
  if (is_forward) forward.emplace(s, halves, ahead, variant, false, nullptr).run();
  if (layer.pass == Pass::both) s.fence();  // the output comes before its gradient
  if (!is_backward) return;
  const bool keeps = forward && has_matrices(layer.rule);
  ZigzagPass(s, halves, use, variant, true, keeps ? &*forward : nullptr).run();
}

std::optional<Cost> claim(const Layer& layer, const Split& split, const Variant& variant) {
  if (split.ranks == 1) return Cost{};
  const bool is_once = variant.exchange == Exchange::once;
  // On a last node that is partly filled the longest chain of one scan may not end where the other
  // begins.
  if (!is_once && split.ranks_per_node > 0 && split.ranks % split.ranks_per_node != 0) return std::nullopt;
  const Shape shape = shape_of_maps(layer, (is_once ? 2 : 1) * layer.share.heads);
  std::vector<Direction> directions{Direction::forward, Direction::reverse};
  if (is_once) directions.pop_back();
  const auto once = claimed_scans(variant.scan_of(layer), shape, split, directions);
  if (!once) return std::nullopt;
  const int passes = layer.pass == Pass::both ? 2 : 1;
  const auto beside = convolution_bytes(layer, split.ranks, Layout::zigzag);
  // Scans start and end at the first rank, whose front has no halo; other exchanges wait for halos.
  const bool waits = variant.exchange != Exchange::scans || layer.mode == Mode::exposed;
  if (layer.share.conv > 1 && !waits && variant.scan_of(layer) != variant.collective) return std::nullopt;
  const int of_halos = layer.share.conv > 1 && waits ? passes : 0;
  const int hops = of_halos + passes * std::accumulate(once->hops.begin(), once->hops.end(), 0);
  return Cost{busiest(*once, passes, beside), lacks_halos(layer, split.ranks, Layout::zigzag) ? -1 : hops};
}

Refusal unsupported(const Layer& layer, const Variant& variant) {
  if (Refusal reason = unsupported_maps(layer, variant.scan_of(layer))) return reason;
  if (layer.shares.are_equal() && layer.share.tokens < 2)
    return "zigzag gives each rank two pieces, and 1 token a rank is one";
  if (layer.mode == Mode::compute_only)
    return "mode compute_only: a rank's two pieces of zigzag tokens do not follow one another";
  if (layer.groups > 1) return "zigzag linear layers exchange all heads at once: use --groups 1";
  return {};
}

RegisteredMethod method(const std::string& name, const std::string& summary, const Variant& variant) {
  return RegisteredMethod({
      .name = name,
      .summary = summary,
      .attention = Attention::linear,
      .rules = {Rule::decay, Rule::delta, Rule::low_rank},
      .packs = true,
      .shares_unequally = true,
      .has_states = true,
      .convolves = true,
      .groups_heads = true,
      .scan = variant.exchange == Exchange::scans ? variant.collective : "",
      .build = convolved(
          [variant](Schedule& s, const Layer& layer, const LayerTensors& x) { build(s, layer, x, variant); },
          Layout::zigzag),
      .claim = [variant](const Layer& layer, const Split& split) { return claim(layer, split, variant); },
      .unsupported = [variant](const Layer& layer, int) { return unsupported(layer, variant); },
      .layout = Layout::zigzag,
  });
}

const RegisteredMethod registered[]{
    method("zeco_zigzag", "All-Scan down the ranks and up again, zigzag tokens",
           {Exchange::scans, "all_scan"}),
    method("lasp2_zigzag", "all-gather of the maps of both halves, zigzag tokens",
           {Exchange::scans, "all_gather_scan"}),
    method("lasp2_zigzag_once", "one all-gather of the maps of both halves, then a fold, zigzag tokens",
           {Exchange::once, "ring_all_gather"}),
    method("lasp2_zigzag_once_direct", "the same in one hop, zigzag tokens",
           {Exchange::once, "direct_all_gather"}),
    method("lasp1_zigzag_as_released",
           "receive, all work of a half, send: a chain of 2P halves, zigzag tokens", {Exchange::relay, ""}),
};

}  // namespace
}  // namespace baton
