// SPDX-License-Identifier: Apache-2.0
// Hidden states of contiguous tokens, moved to the ranks that hold these tokens in a zigzag layout.
//
//   the sequence has 2P pieces; rank r has 2r and 2r+1, and needs r and 2P-1-r
//   send each of the own pieces to its rank, at once, or keep it; receive the two that are needed
//
// A model pays it between its linear and softmax layers if each has the layout that suits it.
// The way back sends every message against its direction, at the same cost.
// Cost: at most two pieces sent by a rank, one where P = 2; 1 hop.
// Source: NVIDIA/Megatron-LM, pull requests 6515 and 6776, which move tokens between layouts.
#include <algorithm>

#include "collectives/collective.hpp"

namespace baton {
namespace {

/// The rank that holds `piece` of the 2P pieces of a zigzag layout.
int zigzag_rank(int piece, int P) { return std::min(piece, 2 * P - 1 - piece); }
/// The place of `piece` among the two pieces of its rank.
int zigzag_place(int piece, int P) { return piece < P ? 0 : 1; }

void direct_to_zigzag(Schedule& s, const Operands& x) {
  const int P = s.ranks(), r = s.rank();
  const Slice own = x.own.packed();
  for (int i = 0; i < 2; ++i) {
    const int piece = 2 * r + i, to = zigzag_rank(piece, P);
    if (to != r)
      s.send(to, own.block(i, 2));
    else
      s.copy(x.into.block(zigzag_place(piece, P), 2), own.block(i, 2));
  }
  for (const int piece : {r, 2 * P - 1 - r})
    if (piece / 2 != r) s.recv(x.into.block(zigzag_place(piece, P), 2), piece / 2);
}

std::int64_t sent_bytes(const Shape& shape, const Split& split, int rank) {
  int sent = 0;
  for (const int piece : {2 * rank, 2 * rank + 1}) sent += zigzag_rank(piece, split.ranks) == rank ? 0 : 1;
  return sent * shape.piece_elements() * element_bytes;
}

const Registered registered{{
    .name = "direct_to_zigzag",
    .kind = Kind::to_zigzag,
    .summary = "every piece of the sequence straight to its zigzag rank, one hop",
    .build = direct_to_zigzag,
    .claim =
        [](const Shape& shape, const Split& split) {
          if (split.ranks == 1) return Cost{};
          return Cost{std::min(split.ranks - 1, 2) * shape.piece_elements() * element_bytes, 1};
        },
    .sent = sent_bytes,
}};

}  // namespace
}  // namespace baton
