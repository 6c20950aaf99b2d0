// SPDX-License-Identifier: Apache-2.0
// LASP-1: the whole state is handed on from rank to rank.
//
//   receive the prefix from the rank before
//   carry = own map applied to the prefix
//   send the carry to the rank after
//
// Cost: one state sent a rank, P-1 hops; time (P-1) (alpha + N/beta), for no two links work at
// once.
// Source: arXiv 2404.02882 (LASP), restated as Algorithm 6 of arXiv 2502.07563. It is All-Scan in
// one block.
#include "collectives/collective.hpp"

namespace baton {
namespace {

void ring_scan(Schedule& s, const Operands& x) { embed(s, "all_scan", {x.own, x.into, 1}); }

std::optional<Cost> claim(const Shape& shape, const Split& split) {
  const int P = split.ranks;
  return Cost{P > 1 ? shape.state_bytes() : 0, P - 1};
}

std::int64_t sent(const Shape& shape, const Split& split, int rank) {
  return rank + 1 < split.ranks ? shape.state_bytes() : 0;
}

const Registered registered{{
    .name = "ring_scan",
    .kind = Kind::exclusive_scan,
    .summary = "LASP-1: the whole state handed on rank by rank",
    .build = ring_scan,
    .claim = claim,
    .sent = sent,
}};

}  // namespace
}  // namespace baton
