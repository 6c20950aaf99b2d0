// SPDX-License-Identifier: Apache-2.0
// All-to-alls in which a block goes straight to its rank.
//
//   keep block r
//   for each i = 1 .. P-1:
//     direct:    send block r+i to rank r+i, receive the block of rank r-i
//     pairwise:  the same, or with rank r xor i if P is a power of two; wait for both messages
//
// Pairwise, a port carries one message at a time; direct, all may share it at once.
// Cost: P-1 blocks sent a rank; direct 1 hop, pairwise P-1 hops.
// Source: arXiv 2309.14509 (DeepSpeed-Ulysses) exchanges heads for tokens in one step; Thakur,
// Rabenseifner and Gropp, IJHPCA 19(1), 2005 (the pairwise exchange of MPICH for long messages).
#include <bit>

#include "collectives/collective.hpp"

namespace baton {
namespace {

void direct_all_to_all(Schedule& s, const Operands& x) {
  const int P = s.ranks(), r = s.rank();
  const Slice own = x.own.packed();
  for (int i = 1; i < P; ++i) {
    const int to = (r + i) % P, from = (r - i + P) % P;
    s.send(to, part_of(own, x.own_counts, to, P));
    s.recv(part_of(x.into, x.into_counts, from, P), from);
  }
  s.copy(part_of(x.into, x.into_counts, r, P), part_of(own, x.own_counts, r, P));
}

void pairwise_all_to_all(Schedule& s, const Operands& x) {
  const int P = s.ranks(), r = s.rank();
  const bool is_power = std::has_single_bit(static_cast<unsigned>(P));
  const Slice own = x.own.packed();
  s.copy(x.into.block(r, P), own.block(r, P));
  for (int i = 1; i < P; ++i) {
    const int to = is_power ? r ^ i : (r + i) % P;
    const int from = is_power ? to : (r - i + P) % P;
    if (i > 1) s.fence();
    s.send(to, own.block(to, P));
    s.recv(x.into.block(from, P), from);
  }
}

std::int64_t sent_bytes(const Shape& shape, int P) {
  return (P - 1) * shape.block_elements(P) * element_bytes;
}

const Registered direct{{
    .name = "direct_all_to_all",
    .kind = Kind::all_to_all,
    .summary = "everybody sends everybody its block at once, one hop",
    .build = direct_all_to_all,
    .claim =
        [](const Shape& shape, const Split& split) {
          return Cost{sent_bytes(shape, split.ranks), split.ranks > 1 ? 1 : 0};
        },
}};

const Registered pairwise{{
    .name = "pairwise_all_to_all",
    .kind = Kind::all_to_all,
    .summary = "blocks change hands with one partner after the other, P-1 hops",
    .build = pairwise_all_to_all,
    .claim =
        [](const Shape& shape, const Split& split) {
          return Cost{sent_bytes(shape, split.ranks), split.ranks - 1};
        },
}};

}  // namespace
}  // namespace baton
