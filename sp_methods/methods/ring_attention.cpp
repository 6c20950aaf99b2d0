// SPDX-License-Identifier: Apache-2.0
// Ring Attention for linear attention without states (linear_ring.hpp): keys and values circulate,
// and each rank forms the left products of its queries with them.
//
// Cost: forward P-1 hops of tokens*heads*(d_k+d_v) elements, and heads*d_k of decay if gated;
// blocks of later ranks are passed on unused. Backward adds as many hops of gradients (the first of
// their P hops would carry zeros) and a scan of heads*d_k. At most P + log2 P hops wait in a chain.
// Source: arXiv 2310.01889 (Ring Attention); the baseline of "LASP-2", arXiv 2502.07563, 4.1.
#include "sp_methods/passes/convolution.hpp"
#include "sp_methods/passes/linear_ring.hpp"
#include "sp_methods/passes/state_scan.hpp"

namespace baton {
namespace {

void ring_attention(Schedule& s, const Layer& layer, const LayerTensors& x) {
  LinearRing ring(s, layer, x);
  run_passes(s, layer, ring);
}

/// Claimed cost of the scan of boundary gate sums, heads*d_k rows of one number.
ClaimedScans claim_of_gate_sums(const LayerShape& share, const Split& split) {
  const Shape rows{share.heads, share.d_k, 1, share.tokens};
  return claimed_scans(LinearRing::scan, rows, split, {Direction::reverse}).value();
}

/// Claimed cost. Hops of gradients are one behind those of blocks, and the scan waits for the last
/// of them. On two ranks the second one gets back a block that nothing was added to.
std::optional<Cost> claim(const Layer& layer, const Split& split) {
  const LayerShape& share = layer.share;
  const int P = split.ranks;
  const bool is_gated = share.gate != GateKind::none;
  const std::int64_t row = key_value_row(share), passes = layer.pass == Pass::both ? 2 : 1;
  const std::int64_t decay_bytes = is_gated ? share.heads * share.d_k * bytes_of(Dtype::f32) : 0;
  if (P == 1) return Cost{};
  ClaimedScans sums{.sent = std::vector<std::int64_t>(P, 0), .hops = {0}};
  if (is_gated && layer.pass != Pass::forward) sums = claim_of_gate_sums(share, split);
  const Cut cut = cut_of(layer, Layout::contiguous, P);
  std::vector<std::int64_t> sent = convolution_bytes(layer, P, Layout::contiguous);
  for (int r = 0; r < P; ++r) {
    const std::int64_t passed_on = cut.sequence() - cut.share((r + 1) % P);
    sent[r] += passes * (passed_on * row * bytes_of(layer.dtype) + (P - 1) * decay_bytes);
    if (layer.pass != Pass::forward) sent[r] += (cut.sequence() - cut.share(r)) * row * bytes_of(Dtype::f32);
  }
  Cost cost{busiest(sums, 1, sent), layer.pass == Pass::backward ? 0 : P - 1};
  // The first hop waits for a halo. The gradients of halos follow all others in mode exposed, and
  // without gates from three ranks on; else the scan of gate sums is the longer chain.
  if (layer.share.conv > 1 && layer.pass != Pass::backward) cost.hops += 1;
  if (cut.least() == 0 && (layer.pass != Pass::forward || layer.share.conv > 1))
    return Cost{cost.sent_bytes, -1};  // a rank without tokens waits for nothing
  if (layer.pass == Pass::forward) return cost;
  const bool is_exposed = layer.mode == Mode::exposed, is_pair = P == 2 && (is_gated || is_exposed);
  if (layer.share.conv > 1 && (is_exposed || (!is_gated && P > 2))) cost.hops += 1;
  cost.hops += P + sums.hops[0] + (is_exposed ? 1 : 0) - (is_pair ? 1 : 0);
  return cost;
}

const RegisteredMethod registered{{
    .name = "ring_attention",
    .summary = "keys and values around the ring, left products: quadratic in the tokens",
    .attention = Attention::linear,
    .shares_unequally = true,
    .convolves = true,
    .build = convolved(ring_attention, Layout::contiguous),
    .claim = claim,
    .unsupported = [](const Layer& layer, int) { return unsupported_in_a_ring(layer); },
}};

}  // namespace
}  // namespace baton
