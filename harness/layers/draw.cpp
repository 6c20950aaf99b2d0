// SPDX-License-Identifier: Apache-2.0
// Each structured binding has all members of its type, so that none can be forgotten.
#include "harness/layers/draw.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace baton {

namespace {

/// Given lengths in words: all of them if they are few, else how many there are and a digest.
std::string text_of(const std::vector<std::int64_t>& lengths) {
  constexpr std::size_t longest = 40;
  std::string all = fmt::format("{}", fmt::join(lengths, ","));
  if (all.size() <= longest) return all;
  std::uint64_t digest = 0;
  for (const std::int64_t length : lengths) digest = mixed(digest + static_cast<std::uint64_t>(length));
  return fmt::format("{} lengths, digest {:016x}", lengths.size(), digest);
}

}  // namespace

std::vector<std::int64_t> Packing::starts(std::int64_t tokens, int ranks, std::int64_t end) const {
  if (!lengths.empty()) return starts_of(lengths);
  if (mean == 0) return {};
  // A uniform draw moves a start to the border of a rank: to the same one in all layouts.
  if (end != Mask::unlimited) tokens = Cut::padded(Layout::contiguous, ranks, end).tokens;
  std::vector<std::int64_t> all = drawn_starts(mean, tokens, ranks, seed, draw);
  std::erase_if(all, [end](std::int64_t start) { return start >= end; });  // of padding
  return all;
}

AxisValues axes_of(const LayerShape& share, const LayerDraw& inputs) {
  const auto& [tokens, heads, d_k, d_v, chunk, gate, kv_heads, latent, packed_chunks, batch, conv, conv_bias,
               qk_heads] = share;
  const auto& [gates, packing] = inputs;
  static_cast<void>(packed_chunks), static_cast<void>(conv_bias);  // follow from packing and model
  return {{"gate", to_string(gate)},
          {"gates", to_string(gates)},
          {"tokens", tokens},
          {"packed", packing.mean},
          {"packed_draw", to_string(packing.mean > 0 ? packing.draw : LengthDraw::uniform)},
          {"documents", text_of(packing.lengths)},
          {"batch", batch},
          {"heads", heads / batch},
          {"kv_heads", kv_heads == heads ? 0 : kv_heads / batch},
          {"qk_heads", qk_heads == heads ? 0 : qk_heads / batch},
          {"latent", latent},
          {"d_k", d_k},
          {"d_v", d_v},
          {"chunk", chunk},
          {"conv", conv}};
}

LayerDraw reduced(LayerDraw inputs, std::int64_t tokens, std::int64_t fewer) {
  auto& [gates, packing] = inputs;
  static_cast<void>(gates);  // the same for any number of tokens
  if (const auto count = static_cast<std::int64_t>(packing.lengths.size()); count > 0) {
    packing.mean =
        (std::accumulate(packing.lengths.begin(), packing.lengths.end(), std::int64_t{0}) + count - 1) /
        count;
    packing.lengths.clear();
  }
  if (packing.mean > 0) packing.mean = std::max<std::int64_t>(2, packing.mean * fewer / tokens);
  packing.multiple = std::min<std::int64_t>(packing.multiple, 4);
  return inputs;
}

Shares reduced(Shares shares, int ranks, std::int64_t tokens, std::int64_t fewer) {
  shares.sequence = ranks * fewer - 1;
  if (shares.rule != ShareRule::given) return shares;
  shares.given.resize(ranks);
  for (std::int64_t& share : shares.given) share = (share * fewer + tokens - 1) / tokens;
  if (std::ranges::count(shares.given, 0) == ranks) shares.given.back() = fewer;
  shares.sequence = std::reduce(shares.given.begin(), shares.given.end());
  return shares;
}

std::string oracle_key(const LayerProblem& problem) {
  const auto& [attention, share, ranks, alone, gates, seed, dtype, rule, starts, has_closed_gates, mask,
               states, shares, ends] = problem;
  const std::string shape_and_gates = axes_of(share, {.gates = gates}).folded(in_all);
  return fmt::format(
      "{} layer by rule {}: {}, {}, {} ranks{}, seed {}, starts {}{}, mask {} to {}, states {}, shares {}, "
      "ends {}",
      to_string(attention), static_cast<int>(rule), shape_and_gates, to_string(dtype), ranks,
      alone ? " alone" : "", seed, fmt::join(starts, " "), has_closed_gates ? " closed" : "", to_string(mask),
      mask.end, to_string(states), to_string(shares), fmt::join(ends, " "));
}

}  // namespace baton
