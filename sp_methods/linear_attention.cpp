// SPDX-License-Identifier: Apache-2.0
// Gated linear attention with its sequence cut over ranks: one text, and the methods differ in the
// scan that carries the states and in when it runs.
//
//   for each head group: local states and the group's map; exchange the map (ZeCO, LASP-2)
//   the work that needs nothing from other ranks
//   (LASP-1, as in its paper: wait for that, then exchange)
//   for each head group: outputs, with the state that came in
//
//   lasp1_as_released: receive, all local work, send: a chain of whole layers
//
// The backward pass is the same text over the reversed ranks. Cost: one state a rank and pass on
// the wire for a chain.
// Source: "ZeCO", arXiv 2507.01004; "LASP", arXiv 2404.02882; "LASP-2", arXiv 2502.07563,
// algorithms 2, 4 and 6; the forms "as released" follow the public code of OpenNLPLab/LASP and
// OpenSparseLLMs/Linear-MoE.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/collective.hpp"
#include "sp_methods/linear_passes.hpp"

namespace baton {
namespace {

/// When a group's exchange runs, beside the local work of its rank.
enum class ExchangePlacement { overlapped, after_local_work, serial, serial_chain, none };

void exchange(Schedule& s, const LinearPass& pass, const Layer& layer, const std::string& scan, int group) {
  embed(s, scan, {pass.map(group), pass.incoming(group).state, layer.blocks});
}

void record_pass(Schedule& s, LinearPass& pass, const Layer& layer, const std::string& scan,
                 ExchangePlacement placement) {
  const bool is_serial = placement == ExchangePlacement::serial;
  for (int g = 0; g < layer.groups; ++g) {
    pass.record_local_states(g);
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

/// A chain whose link is the whole layer: nothing is computed before the state is there.
void record_serial_chain(Schedule& s, LinearPass& pass, const Layer& layer) {
  const int P = s.ranks(), r = s.rank();
  for (int g = 0; g < layer.groups && r > 0; ++g) s.recv(pass.incoming(g).state, r - 1);
  s.fence();
  for (int g = 0; g < layer.groups; ++g) pass.record_local_states(g);
  pass.record_overlappable();
  for (int g = 0; g < layer.groups; ++g) pass.record_outputs(g);
  s.fence();
  for (int g = 0; g < layer.groups && r + 1 < P; ++g) {
    Map carry = pass.map(g).only_state();
    if (r > 0) {
      carry = s.scratch_map("carry", carry).only_state();
      s.combine(carry, pass.incoming(g), pass.map(g));
    }
    s.send(r + 1, carry.state);
  }
}

/// Records a pass and returns it for the next one.
std::unique_ptr<LinearPass> run(Schedule& s, const PassInputs& inputs, const std::string& scan,
                                ExchangePlacement placement) {
  const Layer& layer = inputs.layer;
  auto pass = layer.segmented ? segmented_pass(s, inputs) : chunked_pass(s, inputs);
  if (layer.mode == Mode::compute_only) placement = ExchangePlacement::none;
  if (layer.mode == Mode::exposed && placement != ExchangePlacement::none &&
      placement != ExchangePlacement::serial_chain)
    placement = ExchangePlacement::serial;
  if (placement == ExchangePlacement::serial_chain)
    record_serial_chain(s, *pass, layer);
  else
    record_pass(s, *pass, layer, scan, placement);
  return pass;
}

void build(Schedule& s, const Layer& layer, const LayerTensors& x, const std::string& own_scan,
           ExchangePlacement placement) {
  const std::string scan = layer.scan.empty() ? own_scan : layer.scan;
  const bool alone = layer.mode == Mode::compute_only || placement == ExchangePlacement::none;
  PassInputs inputs{.layer = layer, .tensors = x};
  inputs.is_first = alone || s.rank() == 0;
  inputs.is_last = alone || s.rank() == s.ranks() - 1;
  inputs.prefix =
      saved_for_backward(s, layer, "prefix", layer.share.heads * layer.share.d_k * layer.share.d_v);
  std::unique_ptr<LinearPass> forward;
  if (layer.pass != Pass::backward) forward = run(s, inputs, scan, placement);
  if (layer.pass == Pass::both) s.fence();  // the output comes before its gradient
  if (layer.pass == Pass::forward) return;
  inputs.is_backward = true;
  inputs.forward = forward.get();
  const Reversed reversed(s);
  run(s, inputs, scan, placement);
}

std::vector<Direction> directions_of(Pass pass) {
  if (pass == Pass::both) return {Direction::forward, Direction::reverse};
  return {pass == Pass::forward ? Direction::forward : Direction::reverse};
}

/// Messages in a chain of `groups` scans of `hops` messages each, of which a rank starts one when
/// it has finished the one before.
using HopsInTurn = int(int hops, int groups);

/// Down a chain every further group is two messages behind: a rank has received and sent.
int chain_in_turn(int hops, int groups) { return hops + (groups - 1) * std::min(hops, 2); }

/// A gather ends on all ranks at once.
int gather_in_turn(int hops, int groups) { return hops * groups; }

/// A link of the chain of layers sends the states of all heads after one another.
constexpr const char* link = "ring_scan";

/// The text of one method. One without an exchange is of sequences of single ranks.
struct Text {
  std::string scan;
  ExchangePlacement placement = ExchangePlacement::none;
  HopsInTurn* hops_in_turn = chain_in_turn;
};

/// The cost of each group's scan once a pass. The longest chain of a pass ends where that of the
/// next one begins.
std::optional<Cost> claim(const Layer& layer, const Split& split, const Text& text) {
  const ExchangePlacement placement = text.placement;
  if (layer.mode == Mode::compute_only || placement == ExchangePlacement::none) return Cost{};
  const bool is_link = placement == ExchangePlacement::serial_chain;
  const bool in_turn =
      !is_link && layer.groups > 1 && (placement == ExchangePlacement::serial || layer.mode == Mode::exposed);
  const std::string scan = is_link ? link : layer.scan.empty() ? text.scan : layer.scan;
  if (in_turn && scan != text.scan) return std::nullopt;
  const Shape group{layer.share.heads / layer.groups, layer.share.d_k, layer.share.d_v, layer.share.tokens};
  const auto sent = claimed_scans(scan, group, split, directions_of(layer.pass));
  if (!sent) return std::nullopt;
  Cost cost{layer.groups * sent->bytes, 0};
  for (const int hops : sent->hops) cost.hops += in_turn ? text.hops_in_turn(hops, layer.groups) : hops;
  return cost;
}

Refusal unsupported(const Layer& layer, int) {
  if (Refusal reason = layer.kernels.unsupported(layer.dtype, {layer.share.d_k, layer.share.d_v}))
    return reason;
  if (layer.share.heads % layer.groups == 0) return {};
  return std::to_string(layer.share.heads) + " heads cannot be cut into " + std::to_string(layer.groups) +
         " groups";
}

RegisteredMethod method(const std::string& name, const std::string& summary, const Text& text) {
  return RegisteredMethod({
      .name = name,
      .summary = summary,
      .attention = Attention::linear,
      .scan = text.scan,
      .build = [text](Schedule& s, const Layer& layer,
                      const LayerTensors& x) { build(s, layer, x, text.scan, text.placement); },
      .claim = [text](const Layer& layer, const Split& split) { return claim(layer, split, text); },
      .unsupported = unsupported,
      .sequence = text.placement == ExchangePlacement::none ? Sequence::own : Sequence::cut,
  });
}

const RegisteredMethod registered[]{
    method("zeco", "All-Scan of the states beside the local work",
           {"all_scan", ExchangePlacement::overlapped}),
    method("lasp1", "states from rank to rank after the local work",
           {"ring_scan", ExchangePlacement::after_local_work}),
    method("lasp1_as_released", "receive, all local work, send: a chain of whole layers",
           {"", ExchangePlacement::serial_chain}),
    method("lasp2", "all-gather of the maps beside the local work",
           {"all_gather_scan", ExchangePlacement::overlapped, gather_in_turn}),
    method("lasp2_as_released", "all-gather of the maps, waited for at once",
           {"all_gather_scan", ExchangePlacement::serial, gather_in_turn}),
    method("local", "the rank's own tokens and no exchange: the data-parallel line", {}),
};

}  // namespace
}  // namespace baton
