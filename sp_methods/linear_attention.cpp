// SPDX-License-Identifier: Apache-2.0
// Gated linear attention with its sequence cut over ranks: one text, and the methods differ in the scan that carries
// the states and in when it runs.
//
//   for each head group: summarise the group's tokens; exchange its map    (ZeCO, LASP-2: beside the local work)
//   the work that needs nothing from other ranks
//   (LASP-1, as in its paper: wait for that, then exchange)
//   for each head group: finish with the state that came in
//
//   lasp1_as_released: receive, all local work, send: a chain of whole layers
//
// The backward pass is the same text over the reversed ranks. Cost: one state a rank and pass on the wire for a chain.
// Source: "ZeCO", arXiv 2507.01004; "LASP", arXiv 2404.02882; "LASP-2", arXiv 2502.07563, algorithms 2, 4 and 6; the
// forms "as released" follow the public code of OpenNLPLab/LASP and OpenSparseLLMs/Linear-MoE.
#include <memory>
#include <optional>

#include "collectives/collective.hpp"
#include "sp_methods/linear_passes.hpp"

namespace baton {
namespace {

/// When a group's exchange runs.
enum class When { beside_local_work, after_local_work, waited_for, around_local_work, never };

void exchange(Schedule& s, const LinearPass& pass, const Layer& layer, const std::string& scan, int group) {
  embed(s, scan, {pass.map(group), pass.incoming(group).state, layer.blocks});
}

void beside_or_after(Schedule& s, LinearPass& pass, const Layer& layer, const std::string& scan, When when) {
  for (int g = 0; g < layer.groups; ++g) {
    pass.summarise(g);
    if (when == When::waited_for) s.fence();
    if (when == When::beside_local_work || when == When::waited_for) exchange(s, pass, layer, scan, g);
    if (when == When::waited_for) s.fence();
  }
  pass.beside();
  if (when == When::after_local_work) {
    s.fence();
    for (int g = 0; g < layer.groups; ++g) exchange(s, pass, layer, scan, g);
  }
  for (int g = 0; g < layer.groups; ++g) pass.finish(g);
}

/// A chain whose link is the whole layer: nothing is computed before the state is there.
void around(Schedule& s, LinearPass& pass, const Layer& layer) {
  const int P = s.ranks(), r = s.rank();
  for (int g = 0; g < layer.groups && r > 0; ++g) s.recv(pass.incoming(g).state, r - 1);
  s.fence();
  for (int g = 0; g < layer.groups; ++g) pass.summarise(g);
  pass.beside();
  for (int g = 0; g < layer.groups; ++g) pass.finish(g);
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

void run(Schedule& s, LinearPass& pass, const Layer& layer, const std::string& scan, When when) {
  if (layer.mode == Mode::compute_only) when = When::never;
  if (layer.mode == Mode::exposed && when != When::around_local_work && when != When::never)
    when = When::waited_for;
  if (when == When::around_local_work) return around(s, pass, layer);
  beside_or_after(s, pass, layer, scan, when);
}

void build(Schedule& s, const Layer& layer, const LayerTensors& x, const std::string& own_scan, When when) {
  const std::string scan = layer.scan.empty() ? own_scan : layer.scan;
  const bool alone = layer.mode == Mode::compute_only || when == When::never;
  const bool is_first = alone || s.rank() == 0, is_last = alone || s.rank() == s.ranks() - 1;
  const Slice prefix =
      saved_for_backward(s, layer, "prefix", layer.share.heads * layer.share.d_k * layer.share.d_v);
  if (layer.pass != Pass::backward) run(s, *forward_pass(s, layer, x, prefix, is_first), layer, scan, when);
  if (layer.pass == Pass::both) s.fence();  // the gradient of the output is not there before the output
  if (layer.pass == Pass::forward) return;
  const Reversed reversed(s);
  run(s, *backward_pass(s, layer, x, prefix, is_first, is_last), layer, scan, when);
}

Refusal unsupported(const Layer& layer, int) {
  if (Refusal reason = layer.kernels.unsupported(layer.dtype, {layer.share.d_k, layer.share.d_v}))
    return reason;
  if (layer.share.heads % layer.groups == 0) return {};
  return std::to_string(layer.share.heads) + " heads cannot be cut into " + std::to_string(layer.groups) +
         " groups";
}

RegisteredMethod method(const std::string& name, const std::string& summary, const std::string& scan,
                        When when) {
  return RegisteredMethod({
      .name = name,
      .summary = summary,
      .attention = Attention::linear,
      .scan = scan,
      .build = [=](Schedule& s, const Layer& layer,
                   const LayerTensors& x) { build(s, layer, x, scan, when); },
      .unsupported = unsupported,
  });
}

const RegisteredMethod registered[]{
    method("zeco", "All-Scan of the states beside the local work", "all_scan", When::beside_local_work),
    method("lasp1", "states from rank to rank after the local work", "ring_scan", When::after_local_work),
    method("lasp1_as_released", "receive, all local work, send: a chain of whole layers", "",
           When::around_local_work),
    method("lasp2", "all-gather of the maps beside the local work", "all_gather_scan",
           When::beside_local_work),
    method("lasp2_as_released", "all-gather of the maps, waited for at once", "all_gather_scan",
           When::waited_for),
    method("local", "the rank's own tokens and no exchange: the data-parallel line", "", When::never),
};

}  // namespace
}  // namespace baton
