// SPDX-License-Identifier: Apache-2.0
// ZeCO's All-Scan: the state runs down the chain of ranks in K blocks; all links work at once.
//
//   for each block k of K:
//     receive the prefix of block k from the rank before  (the first rank has none)
//     carry = own map applied to the prefix               (the first rank's is its own state)
//     send the carry to the rank after                    (the last rank sends none)
//
// Cost: one state sent a rank, P-1 hops; time (P-2+K) (alpha + N/(K beta)). No decay travels.
// Source: arXiv 2507.01004, Algorithm 2.
#include "collectives/collective.hpp"

namespace baton {
namespace {

void all_scan(Schedule& s, const Operands& x) {
  const int P = s.ranks(), r = s.rank(), K = x.blocks;
  const bool passes_on = 0 < r && r < P - 1;
  const Slice carry = s.scratch("carry", passes_on ? x.into.count : 0);
  for (int k = 0; k < K; ++k) {
    const Map own = x.own.block(k, K);
    const Map prefix{{}, x.into.block(k, K, own.row), own.row};
    if (r == 0 && P > 1) s.send(1, own.state);
    if (r > 0) s.recv(prefix, r - 1);
    if (!passes_on) continue;
    const Map carried{{}, carry.block(k, K, own.row), own.row};
    s.combine(carried, prefix, own);
    s.send(r + 1, carried);
  }
}

std::optional<Cost> claim(const Shape& shape, const Split& split) {
  const int P = split.ranks;
  return Cost{P > 1 ? shape.state_bytes() : 0, P - 1};
}

std::int64_t sent(const Shape& shape, const Split& split, int rank) {
  return rank + 1 < split.ranks ? shape.state_bytes() : 0;
}

const Registered registered{{
    .name = "all_scan",
    .kind = Kind::exclusive_scan,
    .summary = "ZeCO: the state down the chain of ranks in blocks, all links at work at once",
    .build = all_scan,
    .claim = claim,
    .sent = sent,
    .cuts_blocks = true,
}};

}  // namespace
}  // namespace baton
