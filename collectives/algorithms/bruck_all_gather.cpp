// SPDX-License-Identifier: Apache-2.0
// Bruck's all-gather: the number of blocks at hand doubles with every hop, for any number of ranks.
//
//   gathered = [own]                                   blocks in the order r, r+1, ...
//   for d = 1, 2, 4, ... while d < P:
//     send the first min(d, P-d) gathered blocks to rank r-d, append as many from rank r+d
//   turn the order r, r+1, ... into 0, 1, ...          two local copies
//
// Cost: P-1 blocks sent a rank, at most ceil(log2 P) hops, and one copy of everything. A block sent
// alone is read from the input, so that no copy delays it.
// Source: J. Bruck et al., IEEE TPDS 8(11), 1997.
#include <algorithm>
#include <bit>

#include "collectives/collective.hpp"

namespace baton {
namespace {

void bruck_all_gather(Schedule& s, const Operands& x) {
  const int P = s.ranks(), r = s.rank();
  const Slice own = x.own.packed();
  const std::int64_t n = own.count;
  const Slice gathered = s.scratch("gathered", P * n);
  s.copy(gathered.part(0, n), own);
  for (int d = 1; d < P; d *= 2) {
    const int blocks = std::min(d, P - d);
    s.send((r - d + P) % P, blocks == 1 ? own : gathered.part(0, blocks * n));
    s.recv(gathered.part(d * n, blocks * n), (r + d) % P);
  }
  s.copy(x.into.part(r * n, (P - r) * n), gathered.part(0, (P - r) * n));
  s.copy(x.into.part(0, r * n), gathered.part((P - r) * n, r * n));
}

/// Number of messages on the longest chain. A message of n blocks waits for ceil(log2 n) messages
/// that brought these blocks.
int hops(int P) {
  int most = 0;
  for (int d = 1; d < P; d *= 2) {
    const auto n = static_cast<unsigned>(std::min(d, P - d));
    most = std::max(most, 1 + static_cast<int>(std::bit_width(n - 1)));
  }
  return most;
}

std::optional<Cost> claim(const Shape& shape, const Split& split) {
  const int P = split.ranks;
  return Cost{(P - 1) * shape.map_elements() * element_bytes, hops(P)};
}

const Registered registered{{
    .name = "bruck_all_gather",
    .kind = Kind::all_gather,
    .summary = "maps at hand double with every hop, log2 P hops",
    .build = bruck_all_gather,
    .claim = claim,
}};

}  // namespace
}  // namespace baton
