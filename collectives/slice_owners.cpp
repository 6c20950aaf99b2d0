// SPDX-License-Identifier: Apache-2.0
#include "collectives/slice_owners.hpp"

#include <algorithm>

namespace baton {
namespace {

Map contribution(int rank, const Map& map) { return rank == 0 ? map.only_state() : map; }

Map result(const Operands& x, const SliceOwners& owners, int slice) {
  return owners.part({{}, x.into, x.own.row, x.own.form}, slice);
}

/// Number of rows that the first and the last of `ranks` ranks own each if all ports are to carry
/// equally many elements.
std::int64_t rows_of_end(std::int64_t rows, int ranks) {
  const std::int64_t share = ranks - 3, of = 2 * share + std::int64_t{ranks - 2} * (ranks - 2);
  return (2 * rows * share + of) / (2 * of);
}

/// The first row that `rank` of `ranks` owns of a balanced share. The first of two ranks owns all
/// rows, so that its state is sent once and folded by nobody.
std::int64_t first_balanced_row(std::int64_t rows, int rank, int ranks) {
  if (rank == 0 || rank == ranks) return rank == 0 ? 0 : rows;
  if (ranks == 2) return rows;
  const std::int64_t end = rows_of_end(rows, ranks);
  return end + (rows - 2 * end) * (rank - 1) / (ranks - 2);
}

/// All slices: the first slice of each member from `member` on, then the second ones. Members that
/// send in this order seldom send to the same member.
std::vector<int> in_turn(const SliceOwners& owners, int member) {
  std::vector<int> slices;
  for (int turn = 0; static_cast<int>(slices.size()) < owners.slices; ++turn)
    for (int i = 0; i < owners.size; ++i) {
      const int owner = owners.begin + (member - owners.begin + i) % owners.size;
      const int slice = owners.first_slice(owner) + turn;
      if (slice < owners.first_slice(owner + 1)) slices.push_back(slice);
    }
  return slices;
}

}  // namespace

SliceOwners SliceOwners::of_all(std::int64_t rows, int ranks, int blocks) {
  if (ranks < 3) return {0, ranks, ranks, true};  // of two ranks nobody waits for a slice to hand it on
  std::int64_t most = 0;
  for (int r = 0; r < ranks; ++r)
    most = std::max(most, first_balanced_row(rows, r + 1, ranks) - first_balanced_row(rows, r, ranks));
  const auto slices = static_cast<int>((blocks * most + rows - 1) / rows);
  return {0, ranks, ranks * slices, true};
}

void send_slices(Schedule& s, const Map& own, const SliceOwners& owners) {
  const int r = s.rank();
  if (r == s.ranks() - 1) return;
  for (int slice : in_turn(owners, r)) {
    const int owner = owners.owner(slice);
    if (owner != r) s.send(owner, contribution(r, owners.part(own, slice)));
  }
}

std::vector<Map> receive_maps(Schedule& s, const Map& own, const SliceOwners& owners, int slice) {
  const Map owned = owners.part(own, slice);
  std::vector<Map> maps;
  for (int q = owners.begin; q < owners.end() && q < s.ranks() - 1; ++q) {
    const bool is_own = q == s.rank();
    maps.push_back(contribution(q, is_own ? owned : s.scratch_map("map", owned)));
    if (!is_own) s.recv(maps.back(), q);
  }
  return maps;
}

Map hand_out(Schedule& s, const Operands& x, const SliceOwners& owners, int slice,
             const std::vector<Map>& maps, Map prefix) {
  // Only the first members compute the fold of all: on a chain of nodes the next one waits for it.
  const int last = owners.begin == 0 ? s.ranks() - 1 : owners.end() - 1;
  std::vector<Map> prefixes;  // by member
  for (int q = owners.begin; q < owners.end(); ++q) {
    prefixes.push_back(prefix);
    if (q == last) break;
    const Map& map = maps[q - owners.begin];
    const Map next = q == 0 ? map : s.scratch_map("prefix", map).only_state();
    if (q > 0) s.combine(next, prefix, map);
    prefix = next;
  }
  // Each owner begins with the member behind it, so that not all of them send to the same one.
  for (int i = 1; i <= owners.size; ++i) {
    const int member = (s.rank() - owners.begin + i) % owners.size, q = owners.begin + member;
    if (q == 0) continue;
    if (q == s.rank()) s.copy(result(x, owners, slice), prefixes[member]);
    if (q != s.rank()) s.send(q, prefixes[member]);
  }
  return prefix;
}

void receive_prefix(Schedule& s, const Operands& x, const SliceOwners& owners) {
  if (s.rank() == 0) return;
  for (int slice : in_turn(owners, owners.begin))
    if (const int owner = owners.owner(slice); owner != s.rank()) s.recv(result(x, owners, slice), owner);
}

std::int64_t SliceOwners::first_row(std::int64_t rows, int slice) const {
  if (!balanced) return rows * slice / slices;
  const int each = slices / size, rank = slice / each;
  const std::int64_t first = first_balanced_row(rows, rank, size);
  if (slice % each == 0) return first;
  return first + (first_balanced_row(rows, rank + 1, size) - first) * (slice % each) / each;
}

std::int64_t SliceOwners::owned_shares(const Shape& shape, int rank) const {
  return first_row(shape.shares(), first_slice(rank + 1)) - first_row(shape.shares(), first_slice(rank));
}

std::int64_t SliceOwners::sent_elements(const Shape& shape, int rank, int ranks) const {
  const std::int64_t owned = owned_shares(shape, rank), state = shape.share_state();
  const std::int64_t share = state + (rank > 0 ? shape.share_decay() : 0);
  const std::int64_t own_slices = rank < ranks - 1 ? (shape.shares() - owned) * share : 0;
  const int receivers = size - 1 - (begin == 0 && rank > 0 ? 1 : 0);
  return own_slices + owned * state * receivers;
}

}  // namespace baton
