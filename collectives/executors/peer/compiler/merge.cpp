// SPDX-License-Identifier: Apache-2.0
// Merging: what an author cut into blocks runs as one instruction, since packets make the pipeline.
#include <algorithm>
#include <utility>

#include "collectives/executors/peer/compiler/columns.hpp"
#include "collectives/executors/peer/compiler/fuse.hpp"

namespace baton {
namespace {

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

bool folds_adjoin(const PeerInstruction& a, const PeerInstruction& b) {
  if (a.fold.has_value() != b.fold.has_value()) return false;
  if (!a.fold) return true;
  return !a.fold->arrived && !b.fold->arrived && a.fold->row == b.fold->row && a.count % a.fold->row == 0 &&
         a.fold->x_is_later == b.fold->x_is_later && adjoin(a.fold->decay, b.fold->decay) &&
         adjoin(a.fold->other, b.fold->other);
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
  a.fold->decay.count += b.fold->decay.count;
  a.fold->other.count += b.fold->other.count;
}

}  // namespace

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

}  // namespace baton
