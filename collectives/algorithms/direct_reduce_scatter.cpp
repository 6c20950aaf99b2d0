// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter in one hop: everybody sends everybody its block, and each rank adds what it gets.
//
//   for each distance i = 1 .. P-1:
//     send the own elements of block r+i to rank r+i, receive those of block r from rank r-i
//   into = own elements of block r, and what came, added in the order of the distances
//
// Cost: P-1 blocks sent a rank, 1 hop, and memory for P-1 blocks. Starting at the neighbour keeps
// the ranks off one another's ports.
#include "collectives/collective.hpp"

namespace baton {
namespace {

void direct_reduce_scatter(Schedule& s, const Operands& x) {
  const int P = s.ranks(), r = s.rank();
  const Slice own = x.own.packed();
  const Slice arrived = s.scratch("arrived", (P - 1) * x.into.count);
  for (int i = 1; i < P; ++i) {
    s.send((r + i) % P, part_of(own, x.own_counts, (r + i) % P, P));
    s.recv(arrived.block(i - 1, P - 1), (r - i + P) % P);
  }
  const Slice mine = part_of(own, x.own_counts, r, P);
  for (int i = 1; i < P; ++i) s.add(x.into, i == 1 ? mine : x.into, arrived.block(i - 1, P - 1));
  if (P == 1) s.copy(x.into, own);
}

std::optional<Cost> claim(const Shape& shape, const Split& split) {
  const int P = split.ranks;
  return Cost{(P - 1) * shape.map_elements() * element_bytes, P > 1 ? 1 : 0};
}

const Registered registered{{
    .name = "direct_reduce_scatter",
    .kind = Kind::reduce_scatter,
    .summary = "everybody sends everybody its block and adds, one hop",
    .build = direct_reduce_scatter,
    .claim = claim,
}};

}  // namespace
}  // namespace baton
