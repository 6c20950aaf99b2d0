// SPDX-License-Identifier: Apache-2.0
// Linear attention with its sequence cut over ranks, gated, with a delta rule or with a low-rank
// one. The methods are variants, which differ in the scan that carries the states and in its time.
//
//   for each head group: local states and the group's map; exchange the map (ZeCO, LASP-2)
//   the work that needs nothing from other ranks
//   (LASP-1, as in its paper: wait for that, then exchange)
//   for each head group: outputs, with the state that came in
//
//   lasp1_as_released: receive, all local work, send: a chain of whole layers
//
// The backward pass is the same over the reversed ranks. A state before the sequence becomes part
// of the first rank's map, A S + B in place of B. The last rank applies its map for the state at
// the end of the sequence. Neither travels. Cost: one state a rank and pass on the
// wire for a chain, under any rule: matrices stay, and every other scan sends them. With
// matrices zeco's outputs wait for the states; zeco_corrected has work for that time, which its
// forward pass alone does otherwise (matrix_pass.hpp).
// Source: "ZeCO", arXiv 2507.01004; "LASP", arXiv 2404.02882; "LASP-2", arXiv 2502.07563,
// algorithms 2, 4 and 6; the forms "as released" follow the public code of OpenNLPLab/LASP and
// OpenSparseLLMs/Linear-MoE. Under a delta rule lasp2_as_released is what
// fla-org/flash-linear-attention releases, fla/ops/cp: a gather that is waited for, and another one
// backward of matrices that all ranks have had; lasp1 is the unpipelined chain of mindspore's
// hyper-parallel, linear_attention_context_parallel.py; linear_doubling is MaxText's
// (src/maxtext/models/gdn_cp.py).
#include <algorithm>
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

/// The time of a group's exchange relative to the local work of its rank.
enum class ExchangePlacement { overlapped, after_local_work, serial, serial_chain, none };

/// Number of messages on the longest chain of a layer. A scan takes hops[i] messages in pass i, and
/// a rank starts the scan of each of `groups` when it has finished the one before.
using HopsInTurn = int(const std::vector<int>& hops, int groups, int ranks);

/// Number of messages on the longest chain of chains. Every further group is two messages behind,
/// since a rank has received and sent.
int chain_in_turn(const std::vector<int>& hops, int groups, int) {
  int all = 0;
  for (const int once : hops) all += once + (groups - 1) * std::min(once, 2);
  return all;
}

/// Number of messages on the longest chain of gathers, which end on all ranks at once.
int gather_in_turn(const std::vector<int>& hops, int groups, int) {
  return groups * std::accumulate(hops.begin(), hops.end(), 0);
}

/// Number of messages on the longest chain of doubling, counted rank by rank since the first ranks
/// end earlier and then start the next group. A message waits for both of its ranks; in the second
/// pass the last rank is the first.
int doubling_in_turn(const std::vector<int>& hops, int groups, int ranks) {
  std::vector<int> done(ranks, 0);
  for (std::size_t pass = 0; pass < hops.size(); ++pass) {
    for (int group = 0; group < groups; ++group) {
      const std::vector<int> begun = done;
      std::vector<int> held = done;
      for (int distance = 1; distance < ranks; distance *= 2)
        for (int to = ranks - 1; to >= distance; --to) {  // downwards: what came now is not sent now
          const int message = std::max(held[to - distance], begun[to]) + 1;
          for (int* end : {&done[to - distance], &done[to], &held[to]}) *end = std::max(*end, message);
        }
    }
    std::reverse(done.begin(), done.end());
  }
  return *std::max_element(done.begin(), done.end());
}

/// Number of messages by which the halo of a convolution makes the longest chain of a pass longer,
/// where nothing is waited for.
using HaloHops = int(Direction pass, int ranks);

/// None where a chain starts at the first rank, which has no halo.
int no_halo_hops(Direction, int) { return 0; }

/// One in a forward pass whose exchange waits for the halos of all ranks. A backward pass ends at
/// the first rank, which sends no gradients back.
int forward_halo_hops(Direction pass, int) { return pass == Direction::forward ? 1 : 0; }

/// One unless all rounds of doubling, one after the other, lead from the first rank to the last.
int doubling_halo_hops(Direction, int ranks) { return (ranks & (ranks - 1)) == 0 ? 0 : 1; }

/// One if a slice is folded on a rank that waits for the halo of another.
int two_shot_halo_hops(Direction, int ranks) { return ranks > 3 ? 1 : 0; }

void exchange(Schedule& s, const LinearPass& pass, const Layer& layer, const std::string& scan, int group) {
  embed(s, scan, {pass.map(group), pass.incoming(group).state, layer.blocks});
}

void record_pass(Schedule& s, LinearPass& pass, const Layer& layer, const std::string& scan,
                 ExchangePlacement placement) {
  const bool is_serial = placement == ExchangePlacement::serial;
  for (int g = 0; g < layer.groups; ++g) {
    pass.record_map(g);
    if (is_serial) s.fence();
    if (is_serial || placement == ExchangePlacement::overlapped) exchange(s, pass, layer, scan, g);
    if (is_serial) s.fence();
  }
  pass.record_overlappable();
  if (placement == ExchangePlacement::after_local_work) {
    s.fence();
    for (int g = 0; g < layer.groups; ++g) exchange(s, pass, layer, scan, g);
  }
  for (int g = 0; g < layer.groups; ++g) pass.record_outputs(g);
}

/// The choices of one method. Without an exchange, each rank's tokens are a sequence of their own.
struct Variant {
  std::string scan;
  ExchangePlacement placement = ExchangePlacement::none;
  HopsInTurn* hops_in_turn = chain_in_turn;
  bool corrects = false;
  HaloHops* halo_hops = no_halo_hops;

  std::string scan_of(const Layer& layer) const {
    if (placement == ExchangePlacement::serial_chain) return serial_scan;
    return layer.scan.empty() ? scan : layer.scan;
  }
};

/// Records a pass and returns it for the next one.
std::unique_ptr<LinearPass> run(Schedule& s, const PassInputs& inputs, const std::string& scan,
                                ExchangePlacement placement) {
  const Layer& layer = inputs.layer;
  auto pass = make_pass(s, inputs);
  if (layer.mode == Mode::exposed && placement != ExchangePlacement::none &&
      placement != ExchangePlacement::serial_chain)
    placement = ExchangePlacement::serial;
  if (placement == ExchangePlacement::serial_chain)
    record_link(s, *pass);
  else
    record_pass(s, *pass, layer, scan, placement);
  pass->record_end(inputs.is_backward ? inputs.tensors.d_initial_state : inputs.tensors.final_state);
  return pass;
}

void build(Schedule& s, const Layer& layer, const LayerTensors& x, const Variant& variant) {
  const bool alone = layer.mode == Mode::compute_only || variant.placement == ExchangePlacement::none;
  const ExchangePlacement placement = alone ? ExchangePlacement::none : variant.placement;
  const std::string scan = variant.scan_of(layer);
  const auto use = [&](Direction direction, bool is_recorded) -> MapUse {
    if (!has_matrices(layer.rule) || !is_recorded) return {};
    if (maps_states(layer, direction, s.rank(), s.ranks())) return {true, true};
    return alone ? MapUse{} : map_use(s, scan, layer, direction);
  };
  const MapUse ahead = use(Direction::forward, layer.pass != Pass::backward);
  // The matrices of a backward pass that is recorded later are left by this forward pass.
  const MapUse back = use(Direction::reverse, layer.pass != Pass::forward || layer.saved);
  PassInputs inputs{.layer = layer, .tensors = x};
  inputs.is_first = alone || s.rank() == 0;
  inputs.is_last = alone || s.rank() == s.ranks() - 1;
  inputs.prefix =
      saved_for_backward(s, layer, "prefix", layer.share.heads * layer.share.d_k * layer.share.d_v);
  inputs.initial_state = x.initial_state;
  inputs.d_final_state = x.d_final_state;
  inputs.makes = {ahead.matrix || back.matrix, ahead.state};
  inputs.corrects = variant.corrects;
  inputs.works_ahead = placement != ExchangePlacement::serial_chain;
  std::unique_ptr<LinearPass> forward;
  if (layer.pass != Pass::backward) forward = run(s, inputs, scan, placement);
  if (layer.pass == Pass::both) s.fence();  // the output comes before its gradient
  if (layer.pass == Pass::forward) return;
  inputs.is_backward = true;
  inputs.forward = forward.get();
  inputs.makes = back;
  inputs.corrects = false;
  const Reversed reversed(s);
  run(s, inputs, scan, placement);
}

std::vector<Direction> directions_of(Pass pass) {
  if (pass == Pass::both) return {Direction::forward, Direction::reverse};
  return {pass == Pass::forward ? Direction::forward : Direction::reverse};
}

/// Number of messages by which the halos of a convolution make the longest chain of a layer longer.
/// What is waited for follows the halo. Nothing is known under other scans than the method's own,
/// nor of slices of matrices on three ranks.
std::optional<int> hops_of_halos(const Layer& layer, const Split& split, const Variant& variant) {
  if (layer.share.conv < 2 || split.ranks == 1) return 0;
  const std::vector<Direction> passes = directions_of(layer.pass);
  const bool is_serial =
      variant.placement == ExchangePlacement::serial || variant.placement == ExchangePlacement::serial_chain;
  if (is_serial || layer.mode == Mode::exposed) return static_cast<int>(passes.size());
  const bool is_sliced = variant.halo_hops == two_shot_halo_hops && has_matrices(layer.rule);
  if (variant.scan_of(layer) != variant.scan || (is_sliced && split.ranks == 3)) return std::nullopt;
  int hops = 0;
  for (const Direction pass : passes) hops += variant.halo_hops(pass, split.ranks);
  return hops;
}

/// Claimed cost: that of each group's scan, once a pass. The longest chain of a pass ends where
/// that of the next one begins.
std::optional<Cost> claim(const Layer& layer, const Split& split, const Variant& variant) {
  const ExchangePlacement placement = variant.placement;
  if (layer.mode == Mode::compute_only || placement == ExchangePlacement::none) return Cost{};
  const bool is_link = placement == ExchangePlacement::serial_chain;
  const bool in_turn =
      !is_link && layer.groups > 1 && (placement == ExchangePlacement::serial || layer.mode == Mode::exposed);
  const std::string scan = variant.scan_of(layer);
  if (in_turn && scan != variant.scan) return std::nullopt;
  const Shape group = shape_of_maps(layer, layer.share.heads / layer.groups);
  const auto sent = claimed_scans(scan, group, split, directions_of(layer.pass));
  if (!sent) return std::nullopt;
  const int hops = in_turn ? variant.hops_in_turn(sent->hops, layer.groups, split.ranks)
                           : std::accumulate(sent->hops.begin(), sent->hops.end(), 0);
  const auto beside = convolution_bytes(layer, split.ranks, Layout::contiguous);
  const std::optional<int> of_halos = hops_of_halos(layer, split, variant);
  if (!of_halos) return std::nullopt;
  return Cost{busiest(*sent, layer.groups, beside),
              lacks_halos(layer, split.ranks, Layout::contiguous) ? -1 : hops + *of_halos};
}

Refusal unsupported(const Layer& layer, const Variant& variant) {
  if (Refusal reason = unsupported_maps(layer, variant.scan_of(layer))) return reason;
  if (layer.share.heads % layer.groups == 0) return {};
  return std::to_string(layer.share.heads) + " heads cannot be cut into " + std::to_string(layer.groups) +
         " groups";
}

RegisteredMethod method(const std::string& name, const std::string& summary, const Variant& variant) {
  std::vector<Rule> rules{Rule::decay, Rule::delta, Rule::low_rank};
  if (variant.corrects) rules.erase(rules.begin());
  const Sequence sequence = variant.placement == ExchangePlacement::none ? Sequence::own : Sequence::cut;
  return RegisteredMethod({
      .name = name,
      .summary = summary,
      .attention = Attention::linear,
      .rules = rules,
      .packs = true,
      .shares_unequally = true,
      .has_states = true,
      .convolves = true,
      .groups_heads = true,
      .scan = variant.scan,
      .build = convolved(
          [variant](Schedule& s, const Layer& layer, const LayerTensors& x) { build(s, layer, x, variant); },
          Layout::contiguous, sequence),
      .claim = [variant](const Layer& layer, const Split& split) { return claim(layer, split, variant); },
      .unsupported = [variant](const Layer& layer, int) { return unsupported(layer, variant); },
      .sequence = sequence,
  });
}

const RegisteredMethod registered[]{
    method("zeco", "All-Scan of the states beside the local work",
           {"all_scan", ExchangePlacement::overlapped}),
    method("zeco_corrected",
           "delta and low-rank rules: zeco, with an operator in place of outputs that wait for the states",
           {"all_scan", ExchangePlacement::overlapped, chain_in_turn, true, no_halo_hops}),
    method(
        "linear_doubling", "recursive doubling of the maps beside the local work",
        {"recursive_doubling", ExchangePlacement::overlapped, doubling_in_turn, false, doubling_halo_hops}),
    method("linear_two_shot", "every rank folds a slice of the states beside the local work",
           {"two_shot", ExchangePlacement::overlapped, gather_in_turn, false, two_shot_halo_hops}),
    method("lasp1", "states from rank to rank after the local work",
           {"ring_scan", ExchangePlacement::after_local_work, chain_in_turn, false, forward_halo_hops}),
    method("lasp1_as_released", "receive, all local work, send: a chain of whole layers",
           {"", ExchangePlacement::serial_chain}),
    method("lasp2", "all-gather of the maps beside the local work",
           {"all_gather_scan", ExchangePlacement::overlapped, gather_in_turn, false, forward_halo_hops}),
    method("lasp2_as_released", "all-gather of the maps, waited for at once",
           {"all_gather_scan", ExchangePlacement::serial, gather_in_turn}),
    method("local", "the rank's own tokens and no exchange: the data-parallel line", {}),
};

}  // namespace
}  // namespace baton
