// SPDX-License-Identifier: Apache-2.0
// Slice owners: rank j owns slice j of the state, folds it for everybody and hands each rank its prefix.
//
//   send slice j of the own map to owner j, for all j            (the last rank's map is in nobody's prefix)
//   as owner: prefix = slice of rank 0's state
//     for q = 1 .. P-1:  send prefix to rank q;  prefix = map slice of rank q applied to prefix
//   receive slice j of the own prefix from owner j, for all j    (the first rank has none)
//
// Cost: 2 hops, about 2 (P-1)/P states sent a rank whatever P is: the scan's counterpart of the all-reduce by
// reduce-scatter and all-gather. A slice of a map is two messages, decay and state.
#include <algorithm>

#include "collectives/collective.hpp"

namespace baton {
namespace {

void two_shot(Schedule& s, const Operands& x) {
  const int P = s.ranks(), r = s.rank();
  const auto contribution = [&](int q, const Map& map) { return q == 0 ? map.only_state() : map; };
  for (int i = 1; i < P && r < P - 1; ++i) {
    const int owner = (r + i) % P;
    s.send(owner, contribution(r, x.own.block(owner, P)));
  }

  std::vector<Map> maps(P);
  const Map owned = x.own.block(r, P);
  maps[r] = contribution(r, owned);
  for (int q = 0; q < P - 1; ++q) {
    if (q == r) continue;
    maps[q] = contribution(q, s.scratch_map("map", owned));
    s.recv(maps[q], q);
  }

  Map prefix = maps[0];
  for (int q = 1; q < P; ++q) {
    const Map result{{}, x.into.block(r, P, x.own.row), x.own.row};
    if (q == r) s.copy(result, prefix);
    if (q != r) s.send(q, prefix);
    if (q == P - 1) break;
    const Map next = s.scratch_map("prefix", owned).only_state();
    s.combine(next, prefix, maps[q]);
    prefix = next;
  }

  for (int owner = 0; owner < P && r > 0; ++owner)
    if (owner != r) s.recv(x.into.block(owner, P, x.own.row), owner);
}

/// Bytes that rank r sends: its slices to their owners, then as owner the prefixes of its slice.
std::int64_t sent_by(const Shape& shape, int r, int P) {
  const std::int64_t rows = shape.rows(), owned = rows * (r + 1) / P - rows * r / P;
  const std::int64_t row = shape.d_v + (r > 0 ? 1 : 0);
  const std::int64_t slices = r < P - 1 ? (rows - owned) * row : 0;
  const std::int64_t prefixes = owned * shape.d_v * (r > 0 ? P - 2 : P - 1);
  return (slices + prefixes) * element_bytes;
}

std::optional<Claim> claim(const Shape& shape, int P, int) {
  Claim claim{0, std::min(P - 1, 2)};
  for (int r = 0; r < P && P > 1; ++r) claim.sent_bytes = std::max(claim.sent_bytes, sent_by(shape, r, P));
  return claim;
}

const Registered registered{{
    .name = "two_shot",
    .kind = Kind::exclusive_scan,
    .summary = "every rank owns a slice of the state and folds it for all, two hops",
    .build = two_shot,
    .claim = claim,
}};

}  // namespace
}  // namespace baton
