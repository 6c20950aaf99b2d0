// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter around a ring: the sum of a block visits every rank and ends at its owner.
//
//   for each hop i = 0 .. P-2:
//     send the sum of block r-i-1 to the next rank, own elements alone in the first hop
//     receive the sum of block r-i-2 from the one before, add the own elements
//
// Cost: P-1 blocks sent a rank, P-1 hops; only neighbours talk. It is ring_all_gather run backwards
// in time.
// Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009.
#include <algorithm>

#include "collectives/collective.hpp"

namespace baton {
namespace {

void ring_reduce_scatter(Schedule& s, const Operands& x) {
  const int P = s.ranks(), r = s.rank();
  const int next = (r + 1) % P, before = (r - 1 + P) % P;
  const Slice own = x.own.packed();
  const auto block = [&](int i) { return part_of(own, x.own_counts, (r - i - 1 + P) % P, P); };
  const auto most = x.own_counts.empty() ? x.into.count : *std::ranges::max_element(x.own_counts);
  // Two slots take turns: the next sum may arrive while the one before leaves.
  const Slice slots = s.scratch("sums", P > 2 ? 2 * most : 0);
  Slice sum = block(0);
  for (int i = 1; i < P; ++i) {
    const Slice arriving = i == P - 1 ? x.into : slots.part(i % 2 * most, block(i).count);
    s.send(next, sum);
    s.recv(arriving, before);
    s.add(arriving, arriving, block(i));
    sum = arriving;
  }
  if (P == 1) s.copy(x.into, own);
}

std::optional<Cost> claim(const Shape& shape, const Split& split) {
  const int P = split.ranks;
  return Cost{(P - 1) * shape.map_elements() * element_bytes, P - 1};
}

const Registered registered{{
    .name = "ring_reduce_scatter",
    .kind = Kind::reduce_scatter,
    .summary = "every sum visits every rank around a ring, P-1 hops",
    .build = ring_reduce_scatter,
    .claim = claim,
}};

}  // namespace
}  // namespace baton
