// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/peer/compiler/columns.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace baton {
namespace {

void add(std::vector<PeerAccess>& accesses, const Slice& slice, bool writes, bool shared = false) {
  if (!slice.empty()) accesses.push_back({slice, writes, shared});
}

/// Adds to `relation` the distance that two conflicting accesses require.
void constrain(PeerRelation& relation, const PeerAccess& first, const PeerAccess& second,
               int packet_elements) {
  const std::int64_t elements = second.slice.offset - first.slice.offset;
  const std::int64_t distance = elements / packet_elements;
  if (first.shared || second.shared || elements % packet_elements != 0) relation.aligns = false;
  if (relation.distance && *relation.distance != distance) relation.aligns = false;
  relation.distance = distance;
}

/// Instructions whose columns depend on one another: a union-find in which each knows its distance
/// from its root.
class Columns {
 public:
  explicit Columns(int instructions) : root_(instructions), from_root_(instructions) {
    std::iota(root_.begin(), root_.end(), 0);
  }

  /// Ties `second` to lie `distance` columns behind `first`; false if other ties forbid that.
  bool tie(int first, int second, std::int64_t distance) {
    const int kept = find(first), moved = find(second);
    const std::int64_t shift = from_root_[first] + distance - from_root_[second];
    if (kept == moved) return shift == 0;
    root_[moved] = kept;
    from_root_[moved] = shift;
    return true;
  }

  /// Lays tied groups side by side, so that different threads run independent instructions.
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

bool adjoin(const Slice& a, const Slice& b) {
  return (a.empty() && b.empty()) || (a.buffer == b.buffer && a.end() == b.offset);
}

bool adjoin(const std::vector<Slice>& a, const std::vector<Slice>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Slice& x, const Slice& y) { return adjoin(x, y); });
}

bool adjoin(const PeerMessage& a, const PeerMessage& b, std::int64_t packets) {
  return a.peer == b.peer && a.packet + packets == b.packet;
}

/// True if the decays of `b` are those of the rows behind the `rows` rows of `a`. Blocks that
/// cut a head both have its decay or matrix.
bool decays_adjoin(const PeerFold& a, std::int64_t rows, const PeerFold& b) {
  const MapForm& form = a.by.form;
  const std::int64_t next = form.first + rows;
  MapForm behind = form;
  behind.first = next % form.share;
  return a.by.row == b.by.row && b.by.form == behind && a.decay.buffer == b.decay.buffer &&
         b.decay.offset == a.decay.offset + next / form.share * form.unit(a.by.row);
}

bool folds_adjoin(const PeerInstruction& a, const PeerInstruction& b) {
  if (a.fold.has_value() != b.fold.has_value()) return false;
  if (!a.fold) return true;
  const PeerFold &first = *a.fold, &second = *b.fold;
  return !first.arrived && !second.arrived && first.x_is_later == second.x_is_later &&
         a.count % first.by.row == 0 && decays_adjoin(first, a.count / first.by.row, second) &&
         adjoin(first.other, second.other);
}

bool can_merge(const PeerInstruction& a, const PeerInstruction& b, int packet_elements) {
  if (a.computes || b.computes || a.count % packet_elements != 0) return false;
  const std::int64_t packets = a.packets(packet_elements);
  const bool messages = a.arrival.has_value() == b.arrival.has_value() &&
                        (!a.arrival || adjoin(*a.arrival, *b.arrival, packets)) &&
                        std::equal(a.sends.begin(), a.sends.end(), b.sends.begin(), b.sends.end(),
                                   [&](const PeerSend& x, const PeerSend& y) {
                                     return x.folded == y.folded && adjoin(x.to, y.to, packets);
                                   });
  if (!messages || !adjoin(a.from, b.from) || !adjoin(a.keep, b.keep) || !adjoin(a.results, b.results) ||
      !folds_adjoin(a, b))
    return false;
  const PeerRelation relation = relate(a, b, packet_elements);
  return !relation.distance || (relation.aligns && *relation.distance == packets);
}

void append(PeerInstruction& a, const PeerInstruction& b) {
  a.steps.insert(a.steps.end(), b.steps.begin(), b.steps.end());
  a.count += b.count;
  a.from.count += b.from.count;
  for (std::size_t i = 0; i < a.keep.size(); ++i) a.keep[i].count += b.keep[i].count;
  for (std::size_t i = 0; i < a.results.size(); ++i) a.results[i].count += b.results[i].count;
  if (!a.fold) return;
  a.fold->decay.count = b.fold->decay.end() - a.fold->decay.offset;
  a.fold->other.count += b.fold->other.count;
}

}  // namespace

std::vector<PeerAccess> peer_accesses(const PeerInstruction& instruction) {
  std::vector<PeerAccess> accesses;
  for (const Slice& slice : instruction.reads) add(accesses, slice, false, true);
  for (const Slice& slice : instruction.writes) add(accesses, slice, true, true);
  if (!instruction.arrival) add(accesses, instruction.from, false);
  if (instruction.fold) {
    const PeerFold& fold = *instruction.fold;
    if (!fold.arrived) add(accesses, fold.decay, false, fold.multiplies() || fold.row() > 1);
    add(accesses, fold.other, false);
  }
  for (const Slice& slice : instruction.keep) add(accesses, slice, true);
  for (const Slice& slice : instruction.results) add(accesses, slice, true);
  return accesses;
}

/// True if one of two instructions multiplies by tiles, and two blocks may access one element.
bool mix_blocks(const PeerInstruction& first, const PeerInstruction& second) {
  if (!first.multiplies() && !second.multiplies()) return false;
  if (!first.multiplies() || !second.multiplies()) return true;
  const PeerFold &a = *first.fold, &b = *second.fold;
  return first.count != second.count || a.by.row != b.by.row || a.by.form != b.by.form ||
         (a.decay.offset - b.decay.offset) % 4 != 0;
}

PeerRelation relate(const PeerInstruction& first, const PeerInstruction& second, int packet_elements) {
  PeerRelation relation;
  const auto later = peer_accesses(second);
  for (const PeerAccess& a : peer_accesses(first))
    for (const PeerAccess& b : later)
      if ((a.writes || b.writes) && a.slice.overlaps(b.slice)) constrain(relation, a, b, packet_elements);
  const bool shifts = relation.distance && *relation.distance != 0 && second.multiplies();
  if (shifts || mix_blocks(first, second)) relation.aligns = false;
  return relation;
}

std::vector<PeerInstruction> merge_peer_instructions(std::vector<PeerInstruction> instructions,
                                                     int packet_elements) {
  std::vector<PeerInstruction> merged;
  for (PeerInstruction& instruction : instructions) {
    const bool joins = !merged.empty() && can_merge(merged.back(), instruction, packet_elements) &&
                       merged.back().count + instruction.count <= PeerLimits::elements;
    if (joins)
      append(merged.back(), instruction);
    else
      merged.push_back(std::move(instruction));
  }
  return merged;
}

void assign_columns(std::vector<PeerInstruction>& instructions,
                    const std::vector<LaunchOperation>& operations, int packet_elements) {
  Columns columns(static_cast<int>(instructions.size()));
  for (const LaunchOperation& operation : operations) {
    int since = operation.first;  // the first instruction after the last barrier
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
