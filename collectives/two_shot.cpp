// SPDX-License-Identifier: Apache-2.0
// Slice owners: rank j owns slice j of the state, folds it and hands each rank its prefix.
//
//   send slice j of the own map to owner j, for all j   (the last rank's map is in nobody's prefix)
//   as owner: prefix = slice of rank 0's state
//     for q = 1 .. P-1:  send prefix to rank q;  prefix = map slice of rank q applied to prefix
//   receive slice j of the own prefix from owner j, for all j   (the first rank has none)
//
// Cost: 2 hops, about 2 (P-1)/P states sent a rank whatever P is: the scan's counterpart of the
// all-reduce by reduce-scatter and all-gather.
#include <algorithm>

#include "collectives/slice_owners.hpp"

namespace baton {
namespace {

void two_shot(Schedule& s, const Operands& x) {
  const int P = s.ranks(), r = s.rank();
  const SliceOwners everybody{0, P, P};
  send_slices(s, x.own, everybody);
  hand_out(s, x, everybody, r, receive_maps(s, x.own, everybody, r), {});
  receive_prefix(s, x, everybody);
}

std::int64_t sent(const Shape& shape, const Split& split, int rank) {
  const int P = split.ranks;
  return SliceOwners{0, P, P}.sent_elements(shape, rank, P) * element_bytes;
}

std::optional<Claim> claim(const Shape& shape, const Split& split) {
  const int P = split.ranks;
  Claim claim{0, std::min(P - 1, 2)};
  for (int r = 0; r < P; ++r) claim.sent_bytes = std::max(claim.sent_bytes, sent(shape, split, r));
  return claim;
}

const Registered registered{{
    .name = "two_shot",
    .kind = Kind::exclusive_scan,
    .summary = "every rank owns a slice of the state and folds it for all, two hops",
    .build = two_shot,
    .claim = claim,
    .sent = sent,
}};

}  // namespace
}  // namespace baton
