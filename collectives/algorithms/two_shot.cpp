// SPDX-License-Identifier: Apache-2.0
// Slice owners: rank j owns slice j of the state, folds it and hands each rank its prefix.
//
//   send slice j of the own map to owner j, for all j   (the last rank's map is in nobody's prefix)
//   as owner: prefix = slice of rank 0's state
//     for q = 1 .. P-1:  prefix[q] = prefix;  prefix = map slice of rank q applied to prefix
//     send prefix[q] to rank q, for all q from the rank behind on
//   receive slice j of the own prefix from owner j, for all j   (the first rank has none)
//
// Each slice is cut into blocks that are as large as those of a state in K blocks: an owner hands
// one out while it receives the next.
// Slices are balanced: those of the first and the last rank are smaller, (P-3)/(P-2) of another
// one's. For an owner hands its slice out to P-2 others, the first one to P-1, and the last rank
// sends no map. With P = 3 the rank in the middle owns all; with P = 2 the first does, and what is
// left is one message.
//
// Cost: 2 hops; each rank but the last sends 1 + (P-2)(P-3) / (P^2 - 2P - 2) states, 4/3 for P = 4
// and 1.65 for P = 8, where equal slices cost 2 (P-1)/P: the scan's counterpart of the all-reduce
// by reduce-scatter and all-gather.
//
// Owners of affine maps take equally many heads, each with its matrix. A rank then sends
// (P-1)/P maps and (P-2)/P states.
#include <algorithm>

#include "collectives/slice_owners.hpp"

namespace baton {
namespace {

/// All ranks as slice owners. `rows` counts heads if the rows of a head share a decay or a matrix.
SliceOwners all_ranks(MapKind map, std::int64_t rows, int P, int K) {
  if (map != MapKind::affine) return SliceOwners::of_all(rows, P, K);
  return {0, P, P * ((K + P - 1) / P)};
}

void two_shot(Schedule& s, const Operands& x) {
  const int r = s.rank();
  const MapForm& form = x.own.form;
  const auto everybody = all_ranks(form.kind, x.own.rows() / form.share, s.ranks(), x.blocks);
  const int begin = everybody.first_slice(r), end = everybody.first_slice(r + 1);
  send_slices(s, x.own, everybody);
  std::vector<std::vector<Map>> maps;  // of the own slices
  for (int slice = begin; slice < end; ++slice) maps.push_back(receive_maps(s, x.own, everybody, slice));
  for (int slice = begin; slice < end; ++slice) hand_out(s, x, everybody, slice, maps[slice - begin], {});
  receive_prefix(s, x, everybody);
}

std::int64_t sent(const Shape& shape, const Split& split, int rank) {
  const auto everybody = all_ranks(shape.map, shape.shares(), split.ranks, split.blocks);
  return everybody.sent_elements(shape, rank, split.ranks) * element_bytes;
}

std::optional<Cost> claim(const Shape& shape, const Split& split) {
  const int P = split.ranks;
  Cost claim{0, std::min(P - 1, 2)};
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
    .cuts_blocks = true,
}};

}  // namespace
}  // namespace baton
