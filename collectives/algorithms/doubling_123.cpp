// SPDX-License-Identifier: Apache-2.0
// Exclusive scan in distances of 1, 2 and then 3, 6, 12, ...: from the third round on ranks send
// their prefixes, so that a round folds once and not twice.
//
//   send own map to rank r+1; receive prefix from rank r-1       prefix stands for rank r-1
//   send own map after prefix to rank r+2; receive from rank r-2
//   prefix = prefix after what came                              ranks r-3 .. r-1
//   for d = 3, 6, 12, ... while d < P-1:
//     send prefix to rank r+d; receive from rank r-d             it stands for ranks r-2d .. r-d-1
//     prefix = prefix after what came                            ranks r-2d .. r-1
//
// Rank 0 has no prefix and sends nothing from the third round on. A map that reaches back to rank 0
// has met the zero state and travels as a state. Every round has buffers of its own.
// Cost: 2 + ceil(log2((P-1)/3)) rounds of P > 3 ranks, in each of which a rank sends at most a map:
// as many as recursive doubling, or one more (at 8, 14 to 16, 26 to 32 ranks, ...). At most
// 1 + bit_width((P-1)/3) messages wait for one another. A rank folds once a round from the second
// on, and its own map once; recursive doubling folds up to twice a round.
// Source: J. L. Traff, arXiv 2507.04785 (123-doubling).
#include <algorithm>
#include <bit>

#include "collectives/collective.hpp"

namespace baton {
namespace {

/// The map of the ranks from `first` on: only the state if `first` is not above 0, else decay and
/// state.
Map as_held(const Map& map, int first) { return first <= 0 ? map.only_state() : map; }

/// The first rank whose map is part of the message from rank r to rank r+d.
int first_sent(int r, int d) { return d == 1 ? r : d == 2 ? r - 1 : r - d; }

bool sends(int r, int d, int P) { return r + d < P && (d <= 2 || r > 0); }

int next_distance(int d) { return d == 2 ? 3 : 2 * d; }

void doubling_123(Schedule& s, const Operands& x) {
  const int P = s.ranks(), r = s.rank();
  const Map result{{}, x.into, x.own.row};
  Map prefix;
  const auto room = [&](const char* name, int first) { return as_held(s.scratch_map(name, x.own), first); };
  const auto prefix_from = [&](int first) { return first <= 0 ? result : room("prefix", first); };
  for (int d = 1; d < P; d = next_distance(d)) {
    if (sends(r, d, P)) {
      Map sent = d == 1 || r == 0 ? as_held(x.own, r) : prefix;
      if (d == 2 && r > 0) {
        sent = room("pair", r - 1);
        s.combine(sent, prefix, x.own);
      }
      s.send(r + d, sent.packed());
    }
    if (r < d || !sends(r - d, d, P)) continue;
    const int first = first_sent(r - d, d);
    const Map earlier = d == 1 ? prefix_from(first) : room("earlier", first);
    s.recv(earlier.packed(), r - d);
    const Map longer = d == 1 ? earlier : prefix_from(first);
    if (d > 1) s.combine(longer, earlier, prefix);
    prefix = longer;
  }
}

std::int64_t sent(const Shape& shape, const Split& split, int r) {
  std::int64_t elements = 0;
  for (int d = 1; d < split.ranks; d = next_distance(d))
    if (sends(r, d, split.ranks))
      elements += first_sent(r, d) <= 0 ? shape.state_elements() : shape.map_elements();
  return elements * element_bytes;
}

std::optional<Cost> claim(const Shape& shape, const Split& split) {
  const int P = split.ranks;
  Cost claim;
  for (int r = 0; r < P; ++r) claim.sent_bytes = std::max(claim.sent_bytes, sent(shape, split, r));
  if (P > 1) claim.hops = 1 + std::bit_width(static_cast<unsigned>((P - 1) / 3));
  return claim;
}

const Registered registered{{
    .name = "doubling_123",
    .kind = Kind::exclusive_scan,
    .summary = "prefixes whose span doubles from three ranks on, one fold a round",
    .build = doubling_123,
    .claim = claim,
    .sent = sent,
}};

}  // namespace
}  // namespace baton
