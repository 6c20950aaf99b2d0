// SPDX-License-Identifier: Apache-2.0
// Exclusive scan in log2 P rounds: with every round a map stands for twice as many ranks.
//
//   total = own map                                          ranks r-d+1 .. r at distance d
//   for d = 1, 2, 4, ... while d < P:
//     send total to rank r+d; receive earlier from rank r-d  earlier stands for ranks r-2d+1 .. r-d
//     prefix = prefix after earlier                          at d = 1 the prefix is what came
//     total  = total after earlier
//
// A map that reaches back to the first rank has met the zero state: its decay is spent and it
// travels as a state. Every round has buffers of its own, so no send is waited for.
// Cost: ceil(log2 P) rounds, in each of which a rank sends at most a map. Only floor(log2 P)
// messages wait for one another: what the last round sends over a gap was there before.
// Source: W. D. Hillis and G. L. Steele, CACM 29(12), 1986; order kept.
#include <algorithm>
#include <bit>

#include "collectives/collective.hpp"

namespace baton {
namespace {

/// True if the map that rank r holds at distance d reaches back to the first rank.
bool is_complete(int r, int d) { return r - d + 1 <= 0; }

Map as_held(const Map& map, int r, int d) { return is_complete(r, d) ? map.only_state() : map; }

void recursive_doubling(Schedule& s, const Operands& x) {
  const int P = s.ranks(), r = s.rank();
  const Map result{{}, x.into, x.own.row};
  Map total = as_held(x.own, r, 1), prefix;
  for (int d = 1; d < P; d *= 2) {
    if (r + d < P) s.send(r + d, total.packed());
    if (r < d) continue;
    const bool complete = is_complete(r - d, d), first = d == 1;
    const auto room = [&](const char* name) { return as_held(s.scratch_map(name, x.own), r - d, d); };
    const Map earlier = first && complete ? result : room("earlier");
    s.recv(earlier.packed(), r - d);
    const Map longer = first ? earlier : complete ? result : room("prefix");
    if (!first) s.combine(longer, earlier, prefix);
    prefix = longer;
    if (r + 2 * d >= P) continue;
    const Map next = room("total");
    s.combine(next, earlier, total);
    total = next;
  }
}

std::int64_t sent(const Shape& shape, const Split& split, int r) {
  const int P = split.ranks;
  std::int64_t elements = 0;
  for (int d = 1; d < P && r + d < P; d *= 2)
    elements += is_complete(r, d) ? shape.state_elements() : shape.map_elements();
  return elements * element_bytes;
}

std::optional<Cost> claim(const Shape& shape, const Split& split) {
  const int P = split.ranks;
  Cost claim{0, static_cast<int>(std::bit_width(static_cast<unsigned>(P))) - 1};
  for (int r = 0; r < P; ++r) claim.sent_bytes = std::max(claim.sent_bytes, sent(shape, split, r));
  return claim;
}

const Registered registered{{
    .name = "recursive_doubling",
    .kind = Kind::exclusive_scan,
    .summary = "maps whose span doubles with every hop, log2 P hops",
    .build = recursive_doubling,
    .claim = claim,
    .sent = sent,
}};

}  // namespace
}  // namespace baton
