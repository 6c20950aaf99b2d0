// SPDX-License-Identifier: Apache-2.0
// Ring Attention's exchange: keys and values of every rank pass through every rank.
//
//   held = own keys and values
//   for each hop i = 1 .. P-1:
//     send what is held to the next rank, receive what the rank before held, and hold that
//
// Two slots take turns, so one hop can arrive while the one before is read.
// Cost: P-1 hops of tokens*heads*(d_k+d_v) elements: unlike a state, a hop grows with the tokens.
// Source: arXiv 2310.01889 (Ring Attention).
#include "collectives/collective.hpp"

namespace baton {
namespace {

void ring_exchange(Schedule& s, const Operands& x) {
  const int P = s.ranks(), r = s.rank();
  const int next = (r + 1) % P, before = (r - 1 + P) % P;
  const Slice own = x.own.packed();
  const Slice slots = s.scratch("slots", P > 2 ? 2 * own.count : 0);
  Slice held = own;
  for (int i = 1; i < P; ++i) {
    const Slice arriving = i == P - 1 ? x.into : slots.block(i % 2, 2);
    s.send(next, held);
    s.recv(arriving, before);
    held = arriving;
  }
  if (P == 1) s.copy(x.into, own);
}

std::optional<Cost> claim(const Shape& shape, const Split& split) {
  const int P = split.ranks;
  return Cost{(P - 1) * shape.key_value_elements() * element_bytes, P - 1};
}

const Registered registered{{
    .name = "ring_exchange",
    .kind = Kind::exchange,
    .summary = "Ring Attention: keys and values once around the ring, P-1 hops",
    .build = ring_exchange,
    .claim = claim,
}};

}  // namespace
}  // namespace baton
