// SPDX-License-Identifier: Apache-2.0
// Layers that methods are tested with: their passes, modes and draws, and those with masks.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "sp_methods/layer_inputs.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton::test {

/// A layer that a method runs on so many ranks, its inputs drawn by a seed.
struct Problem {
  const SpMethod* method;
  Layer layer;
  int ranks;
  GateDraw gates = GateDraw::layer;
  std::uint64_t seed = 1;

  bool is_alone() const { return layer.mode == Mode::compute_only || method->sequence == Sequence::own; }
  std::string name() const {
    const LayerShape& s = layer.share;
    return fmt::format(
               "{}/ranks:{}/{}/{}/{}/gates:{}/tokens:{}/heads:{}/kv_heads:{}/d_k:{}/d_v:{}/chunk:{}/"
               "groups:{}/scan:{}/state:{}/seed:{}{}",
               method->name, ranks, to_string(layer.pass), to_string(layer.mode),
               has_matrices(layer.rule) ? attention_name(method->attention, layer.rule, s.gate)
                                        : to_string(s.gate),
               to_string(gates), s.tokens, s.heads, s.key_heads(), s.d_k, s.d_v, s.chunk, layer.groups,
               layer.scan, to_string(layer.states), seed, layer.segmented ? "/segmented" : "") +
           (layer.starts.empty() ? "" : fmt::format("/starts:{}", fmt::join(layer.starts, "-"))) +
           (s.latent ? "/latent/" : "/") + to_string(layer.dtype) +
           (layer.mask == Mask{} ? ""
                                 : fmt::format("/mask:{}/to:{}", to_string(layer.mask.kind), layer.mask.end));
  }
};

/// One method under every pass, mode, gate kind and draw, on one shape and rank count.
inline void add_variants(std::vector<Problem>& all, const SpMethod& method, const LayerShape& shape,
                         int ranks, bool segmented) {
  for (Pass pass : {Pass::forward, Pass::backward, Pass::both})
    for (Mode mode : {Mode::overlapped, Mode::exposed, Mode::compute_only})
      for (GateDraw gates : {GateDraw::layer, GateDraw::strong, GateDraw::weak}) {
        if (shape.gate == GateKind::none && gates != GateDraw::layer) continue;
        if (gates == GateDraw::weak && (pass != Pass::both || mode != Mode::overlapped)) continue;
        all.push_back(
            {&method, {.share = shape, .pass = pass, .mode = mode, .segmented = segmented}, ranks, gates});
      }
}

/// The full mask, where heads share keys and where they do not.
inline void add_masks(std::vector<Problem>& all, const SpMethod& method, int ranks) {
  if (method.attention != Attention::softmax) return;
  const std::size_t first = all.size();
  for (const std::int64_t kv_heads : {0, 4})
    add_variants(all, method, {20, 8, 4, 6, 8, GateKind::none, kv_heads}, ranks, false);
  for (std::size_t i = first; i < all.size(); ++i) all[i].layer.mask.kind = MaskKind::full;
}

/// Sequences that are padded: 19 tokens, and 3, which some ranks have none of.
inline void add_padded(std::vector<Problem>& all, const SpMethod& method, int ranks) {
  const bool is_linear = method.attention == Attention::linear;
  for (const std::int64_t sequence : {19, 3})
    for (const MaskKind mask : {MaskKind::causal, MaskKind::full}) {
      if (is_linear && mask == MaskKind::full) continue;
      const std::int64_t tokens = Cut::padded(method.layout, ranks, sequence).tokens;
      const std::size_t first = all.size();
      add_variants(all, method, {tokens, 4, 4, 6, 4, is_linear ? GateKind::vector : GateKind::none}, ranks,
                   false);
      for (std::size_t i = first; i < all.size(); ++i) all[i].layer.mask = {mask, sequence};
    }
}

}  // namespace baton::test
