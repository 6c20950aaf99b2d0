// SPDX-License-Identifier: Apache-2.0
// Slice owners on every node, and an exclusive scan across nodes on every rail: all network cards
// carry slices at once.
//
//   send slice j of the own map to owner j of the node, for all j < G     (G ranks on a full node)
//   as owner of slice j:
//     total  = maps of the node's members, composed
//     before = exclusive scan of the totals among the owners of slice j of all nodes      (a rail)
//     for each member q:  send before to rank q;  before = map slice of member q applied to before
//   receive slice j of the own prefix from owner j of the node, for all j
//
// A last node that is partly filled has fewer owners, and each owns several slices. On one node it
// is two_shot.
// Cost: 2 hops in the node and those of the rail's scan; a rank sends about 2 (G-1)/G states in its
// node, and between nodes what the rail's scan sends of 1/G state. By recursive doubling that is
// ceil(log2 M) rounds for M nodes; down the chain of nodes in blocks, K of the whole state, M-1
// hops, it pays where nodes are few and the state is large.
#include <algorithm>
#include <bit>

#include "collectives/slice_owners.hpp"

namespace baton {
namespace {

/// The ranks of `node` as owners of as many slices as a full node has ranks, so that a rail has the
/// same slice on all full nodes.
SliceOwners owners_on(const Nodes& nodes, int node) {
  return {nodes.begin(node), nodes.size(node), nodes.full_size()};
}

/// The composition of `maps` in order; the first map itself if there is one alone. Intermediate
/// maps alternate between two buffers, since GPUs do not multiply matrices in place.
Map compose(Schedule& s, const std::vector<Map>& maps) {
  Map total = maps[0], before, other;
  for (std::size_t q = 1; q < maps.size(); ++q) {
    before = total;
    total = q < 3 ? s.scratch_map("total", maps[0]) : other;
    s.combine(total, before, maps[q]);
    other = before;
  }
  return total;
}

/// The fold of `slice` over the nodes before this one, by the exclusive scan `scan` over the rail.
/// The fold is unset on the first node.
Map scan_across(Schedule& s, const std::string& scan, int slice, const Map& total, int blocks) {
  const Nodes nodes = s.nodes();
  const int of_slice = (blocks + nodes.full_size() - 1) / nodes.full_size();
  std::vector<int> rail;
  for (int node = 0; node < nodes.count(); ++node) rail.push_back(owners_on(nodes, node).owner(slice));
  const Map before = s.scratch_map("before", total).only_state();
  const Among peers(s, rail);
  embed(s, scan, {total, before.state, of_slice});
  return before;
}

struct OwnedSlice {
  int slice = 0;
  std::vector<Map> maps;
  Map before;
};

/// True if the scan is recorded as two_shot: on one node, in several blocks. Without blocks, the
/// balanced slices of two_shot take longer than equal ones (docs/decisions/0021).
bool is_two_shot(const Nodes& nodes, int blocks) { return nodes.count() == 1 && blocks > 1; }

void hierarchical_scan(Schedule& s, const Operands& x, const std::string& across) {
  const Nodes nodes = s.nodes();
  if (is_two_shot(nodes, x.blocks)) return find_collective("two_shot").build(s, x);
  const int r = s.rank(), node = nodes.of(r);
  const bool is_first = node == 0, is_last = node + 1 == nodes.count();
  const SliceOwners owners = owners_on(nodes, node);
  send_slices(s, x.own, owners);
  std::vector<OwnedSlice> owned;
  for (int slice = owners.first_slice(r); slice < owners.first_slice(r + 1); ++slice)
    owned.push_back({slice, receive_maps(s, x.own, owners, slice), {}});
  for (OwnedSlice& o : owned) {
    Map total = owners.part(x.own, o.slice);  // of the last node nobody looks at it
    if (is_first) total = hand_out(s, x, owners, o.slice, o.maps, {});
    if (!is_first && !is_last) total = compose(s, o.maps);
    if (nodes.count() > 1) o.before = scan_across(s, across, o.slice, total, x.blocks);
  }
  for (const OwnedSlice& o : owned)
    if (!is_first) hand_out(s, x, owners, o.slice, o.maps, o.before);
  receive_prefix(s, x, owners);
}

/// Elements that an owner on `node` of M sends to other nodes for each decay or matrix that it
/// owns, with the part of the state that it acts on.
using ShareAcross = std::int64_t(const Shape& shape, int node, int M);

/// Messages on the longest chain of a scan across M nodes. `ends` is how many of the first and the
/// last node have several ranks.
using HopsAcross = int(int M, int ends);

std::int64_t sent(const Shape& shape, const Split& split, ShareAcross share_across, int rank) {
  const Nodes nodes = split.nodes();
  if (is_two_shot(nodes, split.blocks)) return find_collective("two_shot").sent(shape, split, rank);
  const int node = nodes.of(rank);
  const SliceOwners owners = owners_on(nodes, node);
  const std::int64_t across = owners.owned_shares(shape, rank) * share_across(shape, node, nodes.count());
  return (owners.sent_elements(shape, rank, split.ranks) + across) * element_bytes;
}

std::optional<Cost> claim(const Shape& shape, const Split& split, ShareAcross share_across,
                          HopsAcross hops_across) {
  const Nodes nodes = split.nodes();
  const int P = split.ranks, M = nodes.count();
  if (is_two_shot(nodes, split.blocks)) return find_collective("two_shot").claim(shape, split);
  const int ends = (nodes.size(0) > 1 ? 1 : 0) + (nodes.size(M - 1) > 1 ? 1 : 0);
  Cost claim{0, M == 1 ? std::min(P - 1, 2) : hops_across(M, ends)};
  for (int r = 0; r < P; ++r)
    claim.sent_bytes = std::max(claim.sent_bytes, sent(shape, split, share_across, r));
  return claim;
}

std::int64_t share_of_chain(const Shape& shape, int node, int M) {
  return node + 1 < M ? shape.share_state() : 0;
}

int hops_of_chain(int M, int ends) { return M - 1 + ends; }

int log2_of(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n))); }

/// Elements that recursive doubling sends from `node` of M for each share: states to the nodes 1,
/// 2, 4, ... ahead, and decays until the first node's state is included.
std::int64_t share_of_doubling(const Shape& shape, int node, int M) {
  return shape.share_state() * log2_of(M - 1 - node) +
         shape.share_decay() * log2_of(std::min(node, M - 1 - node));
}

/// Messages on the longest chain of recursive doubling across M nodes. The chain leads from the
/// first node to the last only if M is a power of two.
int hops_of_doubling(int M, int ends) {
  const bool is_power = std::has_single_bit(static_cast<unsigned>(M));
  return log2_of(M) - 1 + (is_power || ends == 0 ? ends : 2);
}

Collective across_by(const std::string& name, const std::string& scan, const std::string& how,
                     ShareAcross share, HopsAcross hops, bool cuts_blocks) {
  return {
      .name = name,
      .kind = Kind::exclusive_scan,
      .summary = "two_shot on every node, slices across nodes " + how,
      .build = [scan](Schedule& s, const Operands& x) { hierarchical_scan(s, x, scan); },
      .claim = [share, hops](const Shape& shape,
                             const Split& split) { return claim(shape, split, share, hops); },
      .sent = [share](const Shape& shape, const Split& split,
                      int rank) { return sent(shape, split, share, rank); },
      .cuts_blocks = cuts_blocks,
  };
}

const Registered doubling{across_by("hierarchical_scan", "recursive_doubling", "by doubling, log2 rounds",
                                    share_of_doubling, hops_of_doubling, false)};
const Registered chain{across_by("hierarchical_scan_chain", "all_scan", "down the chain in blocks",
                                 share_of_chain, hops_of_chain, true)};

}  // namespace
}  // namespace baton
