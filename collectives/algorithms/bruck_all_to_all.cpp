// SPDX-License-Identifier: Apache-2.0
// Bruck's all-to-all: few messages, each of many blocks, for blocks that are small.
//
//   a block has i places to go, from rank r to r+i; it goes d of them for each bit d of i
//   for d = 1, 2, 4, ... while d < P:
//     pack the blocks whose i has bit d, send them to rank r+d, receive as many from rank r-d
//     unpack each to the place of i; at the end of its way that is the block of rank r-i
//
// Cost: at most ceil(log2 P) hops; about (P/2) log2 P blocks sent a rank, more than the P-1 of the
// others, and copies. A block is read from the input on its first way, and a message of one block
// is not packed.
// Source: J. Bruck et al., IEEE TPDS 8(11), 1997.
#include <algorithm>
#include <vector>

#include "collectives/collective.hpp"

namespace baton {
namespace {

/// Distances below P that have bit `d`, ascending. Their blocks move `d` ranks in one message.
std::vector<int> ways(int P, int d) {
  std::vector<int> all;
  for (int i = d; i < P; ++i)
    if ((i & d) != 0) all.push_back(i);
  return all;
}

std::int64_t most_blocks(int P) {
  std::size_t most = 0;
  for (int d = 1; d < P; d *= 2) most = std::max(most, ways(P, d).size());
  return most > 1 ? static_cast<std::int64_t>(most) : 0;
}

void bruck_all_to_all(Schedule& s, const Operands& x) {
  const int P = s.ranks(), r = s.rank();
  const Slice own = x.own.packed();
  const std::int64_t n = own.count / P;
  const Slice leaving = s.scratch("leaving", most_blocks(P) * n, own.dtype);
  const Slice arriving = s.scratch("arriving", leaving.count, own.dtype);
  const auto place = [&](int i) { return x.into.block((r - i + P) % P, P); };
  const auto held = [&](int i, int d) { return (i & (d - 1)) == 0 ? own.block((r + i) % P, P) : place(i); };
  for (int d = 1; d < P; d *= 2) {
    const std::vector<int> moved = ways(P, d);
    const auto count = static_cast<int>(moved.size());
    const bool is_one = count == 1;
    for (int k = 0; k < count && !is_one; ++k) s.copy(leaving.part(k * n, n), held(moved[k], d));
    s.send((r + d) % P, is_one ? held(d, d) : leaving.part(0, count * n));
    s.recv(is_one ? place(d) : arriving.part(0, count * n), (r - d + P) % P);
    for (int k = 0; k < count && !is_one; ++k) s.copy(place(moved[k]), arriving.part(k * n, n));
  }
  s.copy(place(0), own.block(r, P));
}

/// Bytes and hops of a rank. Messages of several packed blocks wait for one another, whereas a
/// message of one block waits for none.
std::optional<Cost> claim(const Shape& shape, const Split& split) {
  const int P = split.ranks;
  std::int64_t blocks = 0;
  int packed = 0;
  for (int d = 1; d < P; d *= 2) {
    const std::size_t count = ways(P, d).size();
    blocks += static_cast<std::int64_t>(count);
    packed += count > 1;
  }
  return Cost{blocks * shape.block_elements(P) * element_bytes, std::max(packed, P > 1 ? 1 : 0)};
}

const Registered registered{{
    .name = "bruck_all_to_all",
    .kind = Kind::all_to_all,
    .summary = "packed blocks, log2 P hops, more bytes: for small blocks",
    .build = bruck_all_to_all,
    .claim = claim,
}};

}  // namespace
}  // namespace baton
