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
#include "collectives/collective.hpp"

namespace baton {
namespace {

void scan_over(const std::string& all_gather, Schedule& s, const Operands& x) {
  const int P = s.ranks(), r = s.rank();
  const std::int64_t rows = x.own.rows(), n = rows + x.own.state.count;
  const Slice maps = s.scratch("maps", P * n);
  embed(s, all_gather, {x.own, maps, 1});
  const auto map = [&](int j) -> Map {
    const Slice packed = maps.part(j * n, n);
    return {packed.part(0, rows), packed.part(rows, n - rows), x.own.row};
  };
  const Map prefix{{}, x.into, x.own.row};
  if (r == 1) s.copy(prefix, map(0).only_state());
  for (int j = 1; j < r; ++j) s.combine(prefix, j == 1 ? map(0).only_state() : prefix, map(j));
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

}  // namespace
}  // namespace baton
