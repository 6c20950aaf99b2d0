// SPDX-License-Identifier: Apache-2.0
// The layers of every_method_test whose sequences are masked, padded or unequally shared.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/sp_methods/method_problems.hpp"

namespace baton::test {

/// The full mask, and windows that end in a share and that are longer than two, where heads share
/// keys and where they do not.
inline void add_masks(std::vector<Problem>& all, const SpMethod& method, int ranks) {
  if (method.attention != Attention::softmax) return;
  for (const Mask& mask : {Mask{MaskKind::full}, Mask{.window = 7}, Mask{.window = 50}}) {
    const std::size_t first = all.size();
    for (const std::int64_t kv_heads : {0, 4})
      add_variants(all, method, {20, 8, 4, 6, 8, GateKind::none, kv_heads}, ranks, false);
    for (std::size_t i = first; i < all.size(); ++i) all[i].layer.mask = mask;
  }
}

/// Sequences that are padded: 19 tokens, and 3, which some ranks have none of.
inline void add_padded(std::vector<Problem>& all, const SpMethod& method, int ranks) {
  const bool is_linear = method.attention == Attention::linear;
  for (const std::int64_t sequence : {19, 3})
    for (const Mask& mask : {Mask{}, Mask{MaskKind::full}, Mask{.window = 5}})
      for (const Pass pass : {Pass::forward, Pass::backward, Pass::both}) {
        if (is_linear && !(mask == Mask{})) continue;
        const std::int64_t tokens = Cut::padded(method.layout, ranks, sequence).tokens;
        const LayerShape share{tokens, 4, 4, 6, 4, is_linear ? GateKind::vector : GateKind::none};
        all.push_back(
            {&method, {.share = share, .pass = pass, .mask = {mask.kind, sequence, mask.window}}, ranks});
      }
}

/// Unequal shares of 19 tokens, and of 3 and 1, which some ranks have none of; given ones that are
/// empty at the start, in the middle and at the end. Documents start within shares and at their
/// ends, and of some a rank has no token.
inline void add_unequal(std::vector<Problem>& all, const SpMethod& method, int ranks) {
  if (!method.shares_unequally) return;
  const bool is_linear = method.attention == Attention::linear;
  std::vector<Shares> cuts;
  for (const std::int64_t sequence : {19, 3, 1})
    for (const ShareRule rule : {ShareRule::even, ShareRule::last}) cuts.push_back({rule, sequence});
  for (std::vector<std::int64_t> given : {std::vector<std::int64_t>{0, 9, 0, 10}, {9, 1, 9, 0}}) {
    given.resize(ranks);
    cuts.push_back({ShareRule::given, std::reduce(given.begin(), given.end()), given});
  }
  for (const Shares& shares : cuts)
    for (const Mask& mask : {Mask{}, Mask{MaskKind::full}, Mask{.window = 5}})
      for (const Pass pass : {Pass::forward, Pass::backward, Pass::both}) {
        if (shares.sequence == 0 || (is_linear && !(mask == Mask{}))) continue;
        Layer layer{.share = {0, 4, 4, 6, 4, is_linear ? GateKind::vector : GateKind::none},
                    .shares = shares,
                    .pass = pass,
                    .mask = {mask.kind, shares.sequence, mask.window}};
        layer.share.tokens = cut_of(layer, method.layout, ranks).tokens;
        all.push_back({&method, layer, ranks});
        all.back().layer.mode = Mode(all.size() % 2 == 0);  // overlapped or exposed
        if (shares.sequence == 1) continue;
        all.push_back({&method, layer, ranks});
        all.back().layer.starts = shares.sequence == 3 ? std::vector<std::int64_t>{0, 1, 2}
                                                       : std::vector<std::int64_t>{0, 4, 5, 10};
        std::erase_if(all.back().layer.starts, [&](auto start) { return start >= shares.sequence; });
        if (!is_linear) continue;
        all.push_back({&method, layer, ranks});
        all.back().layer.share.conv = method.convolves ? 4 : 0;
        all.push_back({&method, layer, ranks});
        all.back().layer.segmented = true;
        all.push_back({&method, layer, ranks});
        all.back().layer.mode = Mode::compute_only;
      }
}

}  // namespace baton::test
