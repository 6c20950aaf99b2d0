// SPDX-License-Identifier: Apache-2.0
#include "collectives/slice_owners.hpp"

namespace baton {
namespace {

Map contribution(int rank, const Map& map) { return rank == 0 ? map.only_state() : map; }

Map result(const Operands& x, const SliceOwners& owners, int slice) {
  return {{}, x.into.block(slice, owners.slices, x.own.row), x.own.row};
}

}  // namespace

void send_slices(Schedule& s, const Map& own, const SliceOwners& owners) {
  const int r = s.rank();
  if (r == s.ranks() - 1) return;
  for (int i = 0; i < owners.slices; ++i) {
    const int slice = (owners.first_slice(r) + i) % owners.slices, owner = owners.owner(slice);
    if (owner != r) s.send(owner, contribution(r, own.block(slice, owners.slices)));
  }
}

std::vector<Map> receive_maps(Schedule& s, const Map& own, const SliceOwners& owners, int slice) {
  const Map owned = own.block(slice, owners.slices);
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
  for (int q = owners.begin; q < owners.end(); ++q) {
    if (q > 0 && q == s.rank()) s.copy(result(x, owners, slice), prefix);
    if (q > 0 && q != s.rank()) s.send(q, prefix);
    if (q == last) break;
    const Map& map = maps[q - owners.begin];
    const Map next = q == 0 ? map : s.scratch_map("prefix", map).only_state();
    if (q > 0) s.combine(next, prefix, map);
    prefix = next;
  }
  return prefix;
}

void receive_prefix(Schedule& s, const Operands& x, const SliceOwners& owners) {
  if (s.rank() == 0) return;
  for (int slice = 0; slice < owners.slices; ++slice)
    if (const int owner = owners.owner(slice); owner != s.rank()) s.recv(result(x, owners, slice), owner);
}

std::int64_t SliceOwners::owned_rows(const Shape& shape, int rank) const {
  return shape.rows() * first_slice(rank + 1) / slices - shape.rows() * first_slice(rank) / slices;
}

std::int64_t SliceOwners::sent_elements(const Shape& shape, int rank, int ranks) const {
  const std::int64_t owned = owned_rows(shape, rank), row = shape.d_v + (rank > 0 ? 1 : 0);
  const std::int64_t own_slices = rank < ranks - 1 ? (shape.rows() - owned) * row : 0;
  const int receivers = size - 1 - (begin == 0 && rank > 0 ? 1 : 0);
  return own_slices + owned * shape.d_v * receivers;
}

}  // namespace baton
