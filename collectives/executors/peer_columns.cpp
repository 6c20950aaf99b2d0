// SPDX-License-Identifier: Apache-2.0
// Columns and barriers.
#include "collectives/executors/peer_columns.hpp"

#include <algorithm>

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

}  // namespace

std::vector<PeerAccess> peer_accesses(const PeerInstruction& instruction) {
  std::vector<PeerAccess> accesses;
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

void assign_columns(std::vector<PeerInstruction>& instructions, int packet_elements) {
  std::size_t since = 0;  // all before this one is behind a barrier
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    PeerInstruction& instruction = instructions[i];
    std::optional<std::int64_t> column;
    for (std::size_t before = since; before < i && !instruction.barrier; ++before) {
      const PeerRelation relation = relate(instructions[before], instruction, packet_elements);
      if (!relation.distance) continue;
      const std::int64_t wanted = instructions[before].column + *relation.distance;
      if (!relation.aligns || (column && *column != wanted)) instruction.barrier = true;
      column = wanted;
    }
    if (instruction.barrier) since = i;
    instruction.column = instruction.barrier ? 0 : column.value_or(0);
  }
}

}  // namespace baton
