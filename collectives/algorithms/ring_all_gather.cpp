// SPDX-License-Identifier: Apache-2.0
// All-gather around a ring: every block visits every rank.
//
//   keep the own block, which may lie in its place already
//   for each hop i = 0 .. P-2:
//     send block r-i to the next rank, receive block r-i-1 from the one before
//
// Cost: P-1 blocks sent a rank, P-1 hops; only neighbours talk. The block sent first is read from
// the input, so that the copy of the own block delays nobody.
#include "collectives/collective.hpp"

namespace baton {
namespace {

void ring_all_gather(Schedule& s, const Operands& x) {
  const int P = s.ranks(), r = s.rank();
  const int next = (r + 1) % P, before = (r - 1 + P) % P;
  const Slice own = x.own.packed();
  const auto block = [&](int i) { return part_of(x.into, x.into_counts, (r - i + P) % P, P); };
  for (int i = 0; i < P - 1; ++i) {
    s.send(next, i == 0 ? own : block(i));
    s.recv(block(i + 1), before);
  }
  if (block(0) != own) s.copy(block(0), own);
}

std::optional<Cost> claim(const Shape& shape, const Split& split) {
  const int P = split.ranks;
  return Cost{(P - 1) * shape.map_elements() * element_bytes, P - 1};
}

const Registered registered{{
    .name = "ring_all_gather",
    .kind = Kind::all_gather,
    .summary = "every map visits every rank around a ring, P-1 hops",
    .build = ring_all_gather,
    .claim = claim,
}};

}  // namespace
}  // namespace baton
