// SPDX-License-Identifier: Apache-2.0
// LASP-2: all ranks gather the maps of all ranks, then every rank folds those before it.
//
//   maps = all-gather of the own maps
//   prefix = state of map 0
//   for j = 1 .. r-1:  prefix = map j applied to prefix
//
// Cost: (P-1) maps sent a rank, the hops of the all-gather, and up to P-2 local combines that no
// wire hides.
// Source: arXiv 2502.07563 (LASP-2), Algorithm 2. One row for each all-gather beneath it.
//
// Trimmed: a rank sends its map to the ranks behind it, which alone need it, and the first rank
// sends its state alone, for what it decays is zero. Cost: at most P-1 states or P-2 maps sent a
// rank, 1 hop, and P-2 maps and a state received by the last rank.
#include <algorithm>
#include <vector>

#include "collectives/collective.hpp"

namespace baton {
namespace {

void scan_over(const std::string& all_gather, Schedule& s, const Operands& x) {
  const int P = s.ranks(), r = s.rank();
  const std::int64_t n = x.own.packed().count, decays = n - x.own.state.count;
  const Slice maps = s.scratch("maps", P * n);
  embed(s, all_gather, {x.own, maps, 1});
  const auto map = [&](int j) -> Map {
    const Slice packed = maps.part(j * n, n);
    return {packed.part(0, decays), packed.part(decays, n - decays), x.own.row, x.own.form};
  };
  const Map prefix{{}, x.into, x.own.row};
  if (r == 1) s.copy(prefix, map(0).only_state());
  for (int j = 1; j < r; ++j) s.combine(prefix, j == 1 ? map(0).only_state() : prefix, map(j));
}

void trimmed_scan(Schedule& s, const Operands& x) {
  const int P = s.ranks(), r = s.rank();
  for (int to = r + 1; to < P; ++to) s.send(to, r == 0 ? x.own.state : x.own.packed());
  if (r > 0) s.recv(x.into, 0);
  std::vector<Map> maps;
  for (int j = 1; j < r; ++j) {
    maps.push_back(s.scratch_map("map", x.own));
    s.recv(maps.back().packed(), j);
  }
  const Map prefix{{}, x.into, x.own.row};
  for (const Map& map : maps) s.combine(prefix, prefix, map);
}

std::int64_t sent_trimmed(const Shape& shape, const Split& split, int rank) {
  const std::int64_t elements = rank == 0 ? shape.state_elements() : shape.map_elements();
  return (split.ranks - 1 - rank) * elements * element_bytes;
}

std::optional<Cost> claim_trimmed(const Shape& shape, const Split& split) {
  const std::int64_t first = sent_trimmed(shape, split, 0);
  if (split.ranks == 1) return Cost{0, 0};
  return Cost{std::max(first, sent_trimmed(shape, split, 1)), 1};
}

Collective over(const std::string& name, const std::string& all_gather) {
  return {
      .name = name,
      .kind = Kind::exclusive_scan,
      .summary = "LASP-2: " + all_gather + " of the maps, then a local fold",
      .build = [all_gather](Schedule& s, const Operands& x) { scan_over(all_gather, s, x); },
      .claim = [all_gather](const Shape& shape,
                            const Split& split) { return find_collective(all_gather).claim(shape, split); },
  };
}

const Registered ring{over("all_gather_scan", "ring_all_gather")};
const Registered bruck{over("all_gather_scan_bruck", "bruck_all_gather")};
const Registered direct{over("all_gather_scan_direct", "direct_all_gather")};
const Registered trimmed{{
    .name = "all_gather_scan_trimmed",
    .kind = Kind::exclusive_scan,
    .summary = "LASP-2: each map to the ranks behind it alone, then a local fold",
    .build = trimmed_scan,
    .claim = claim_trimmed,
    .sent = sent_trimmed,
}};

}  // namespace
}  // namespace baton
