// SPDX-License-Identifier: Apache-2.0
// Columns and barriers.
#include "collectives/executors/peer/compiler/columns.hpp"

#include <algorithm>
#include <numeric>

namespace baton {
namespace {

bool overlap(const Slice& a, const Slice& b) {
  return a.buffer == b.buffer && !a.empty() && !b.empty() && a.offset < b.end() && b.offset < a.end();
}

void add(std::vector<PeerAccess>& accesses, const Slice& slice, bool writes, bool shared = false) {
  if (!slice.empty()) accesses.push_back({slice, writes, shared});
}

/// Adds to `relation` what two accesses that conflict ask for.
void constrain(PeerRelation& relation, const PeerAccess& first, const PeerAccess& second,
               int packet_elements) {
  const std::int64_t elements = second.slice.offset - first.slice.offset;
  const std::int64_t distance = elements / packet_elements;
  if (first.shared || second.shared || elements % packet_elements != 0) relation.aligns = false;
  if (relation.distance && *relation.distance != distance) relation.aligns = false;
  relation.distance = distance;
}

/// Instructions whose columns hang together: a union-find whose members know how far they are from their root.
class Columns {
 public:
  explicit Columns(int instructions) : root_(instructions), from_root_(instructions) {
    std::iota(root_.begin(), root_.end(), 0);
  }

  /// Asks that `second` be `distance` columns behind `first`; false where they lie otherwise already.
  bool tie(int first, int second, std::int64_t distance) {
    const int kept = find(first), moved = find(second);
    const std::int64_t shift = from_root_[first] + distance - from_root_[second];
    if (kept == moved) return shift == 0;
    root_[moved] = kept;
    from_root_[moved] = shift;
    return true;
  }

  /// Lays what hangs together side by side, so that different threads do what is independent.
  void spread(std::vector<PeerInstruction>& instructions, int packet_elements) {
    std::vector<std::int64_t> least(root_.size(), 0), most(root_.size(), 0);
    for (int i = 0; i < static_cast<int>(root_.size()); ++i) {
      const int root = find(i);
      least[root] = std::min(least[root], from_root_[i]);
      most[root] = std::max(most[root], from_root_[i] + instructions[i].packets(packet_elements));
    }
    std::int64_t next = 0;
    std::vector<std::int64_t> base(root_.size(), -1);
    for (int i = 0; i < static_cast<int>(root_.size()); ++i) {
      const int root = find(i);
      if (base[root] < 0) base[root] = next - least[root], next += most[root] - least[root];
      instructions[i].column = base[root] + from_root_[i];
    }
  }

 private:
  int find(int i) {
    if (root_[i] == i) return i;
    const int above = root_[i], root = find(above);
    if (above != root) from_root_[i] += from_root_[above];
    return root_[i] = root;
  }

  std::vector<int> root_;
  std::vector<std::int64_t> from_root_;
};

}  // namespace

std::vector<PeerAccess> peer_accesses(const PeerInstruction& instruction) {
  std::vector<PeerAccess> accesses;
  for (const Slice& slice : instruction.reads) add(accesses, slice, false, true);
  for (const Slice& slice : instruction.writes) add(accesses, slice, true, true);
  if (!instruction.arrival) add(accesses, instruction.from, false);
  if (instruction.fold) {
    const PeerFold& fold = *instruction.fold;
    if (!fold.arrived) add(accesses, fold.decay, false, fold.row > 1);
    add(accesses, fold.other, false);
  }
  for (const Slice& slice : instruction.keep) add(accesses, slice, true);
  for (const Slice& slice : instruction.results) add(accesses, slice, true);
  return accesses;
}

PeerRelation relate(const PeerInstruction& first, const PeerInstruction& second, int packet_elements) {
  PeerRelation relation;
  const auto later = peer_accesses(second);
  for (const PeerAccess& a : peer_accesses(first))
    for (const PeerAccess& b : later)
      if ((a.writes || b.writes) && overlap(a.slice, b.slice)) constrain(relation, a, b, packet_elements);
  return relation;
}

void assign_columns(std::vector<PeerInstruction>& instructions, const std::vector<PeerOperation>& operations,
                    int packet_elements) {
  Columns columns(static_cast<int>(instructions.size()));
  for (const PeerOperation& operation : operations) {
    int since = operation.first;  // all before this one is behind a barrier
    for (int i = operation.first; i < operation.last; ++i) {
      for (int before = since; before < i && !instructions[i].barrier; ++before) {
        const PeerRelation relation = relate(instructions[before], instructions[i], packet_elements);
        if (!relation.distance) continue;
        instructions[i].barrier = !relation.aligns || !columns.tie(before, i, *relation.distance);
      }
      if (instructions[i].barrier) since = i;
    }
  }
  columns.spread(instructions, packet_elements);
}

}  // namespace baton
