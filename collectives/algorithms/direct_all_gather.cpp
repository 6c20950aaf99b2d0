// SPDX-License-Identifier: Apache-2.0
// All-gather in one hop: everybody sends its block to everybody.
//
//   for each distance i = 1 .. P-1:
//     send the own block to rank r+i, receive the block of rank r-i
//   keep the own block
//
// Cost: P-1 blocks sent a rank, 1 hop. Starting at the neighbour keeps the ranks off one another's
// ports.
#include "collectives/collective.hpp"

namespace baton {
namespace {

void direct_all_gather(Schedule& s, const Operands& x) {
  const int P = s.ranks(), r = s.rank();
  const Slice own = x.own.packed();
  for (int i = 1; i < P; ++i) {
    const int to = (r + i) % P, from = (r - i + P) % P;
    s.send(to, own);
    s.recv(part_of(x.into, x.into_counts, from, P), from);
  }
  s.copy(part_of(x.into, x.into_counts, r, P), own);
}

std::optional<Cost> claim(const Shape& shape, const Split& split) {
  const int P = split.ranks;
  return Cost{(P - 1) * shape.map_elements() * element_bytes, P > 1 ? 1 : 0};
}

const Registered registered{{
    .name = "direct_all_gather",
    .kind = Kind::all_gather,
    .summary = "everybody sends its map to everybody, one hop",
    .build = direct_all_gather,
    .claim = claim,
}};

}  // namespace
}  // namespace baton
