// SPDX-License-Identifier: Apache-2.0
#include "collectives/collective.hpp"

#include <algorithm>
#include <utility>

#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/registry.hpp"

namespace baton {
namespace {

Registry<Collective>& registry() {
  static Registry<Collective> all("collective");
  return all;
}

/// Adds the buffers of `kind` to `schedule`.
Operands declare(Schedule& schedule, Kind kind, const Shape& shape, const Split& split) {
  const std::int64_t ranks = split.ranks;
  const int blocks = split.blocks;
  switch (kind) {
    case Kind::exclusive_scan: {
      const Slice own = schedule.input("own", shape.map_elements());
      const std::int64_t decays = shape.decay_elements();
      Map map{own.part(0, decays), own.part(decays, shape.state_elements()), shape.row(), shape.form()};
      map.form.transposed = shape.map == MapKind::affine && split.direction == Direction::reverse;
      return {map, schedule.output("into", shape.state_elements(), schedule.rank() > 0), blocks};
    }
    case Kind::all_gather: {
      const Slice own = schedule.input("own", shape.map_elements());
      return {{{}, own, 1}, schedule.output("into", ranks * shape.map_elements()), blocks};
    }
    case Kind::reduce_scatter: {
      const Slice own = schedule.input("own", ranks * shape.map_elements());
      return {{{}, own, 1}, schedule.output("into", shape.map_elements()), blocks};
    }
    case Kind::exchange: {
      const Slice own = schedule.input("own", shape.key_value_elements());
      return {{{}, own, 1}, schedule.output("into", shape.key_value_elements()), blocks};
    }
    case Kind::all_to_all: {
      const std::int64_t count = ranks * shape.block_elements(schedule.ranks());
      const Slice own = schedule.input("own", count);
      return {{{}, own, 1}, schedule.output("into", count), blocks};
    }
    case Kind::to_zigzag: {
      const Slice own = schedule.input("own", 2 * shape.piece_elements());
      return {{{}, own, 1}, schedule.output("into", own.count), blocks};
    }
  }
  throw UsageError("unknown kind of collective");
}

}  // namespace

const char* to_string(Kind kind) {
  switch (kind) {
    case Kind::exclusive_scan: return "exclusive_scan";
    case Kind::all_gather: return "all_gather";
    case Kind::reduce_scatter: return "reduce_scatter";
    case Kind::exchange: return "exchange";
    case Kind::all_to_all: return "all_to_all";
    case Kind::to_zigzag: return "to_zigzag";
  }
  return "?";
}

const char* to_string(Direction direction) { return direction == Direction::forward ? "forward" : "reverse"; }

Registered::Registered(Collective collective) {
  add_or_exit([&collective] {
    if (!collective.claim)
      throw UsageError("the collective '" + collective.name +
                       "' has no .claim; one that returns std::nullopt claims nothing");
    const std::string name = collective.name;
    registry().add(name, std::move(collective));
  });
}

std::vector<const Collective*> collectives() {
  std::vector<const Collective*> all = registry().all();
  std::stable_sort(all.begin(), all.end(),
                   [](const Collective* a, const Collective* b) { return a->kind < b->kind; });
  return all;
}

const Collective& find_collective(const std::string& name) { return registry().at(name); }

std::optional<std::int64_t> claimed_bytes(const Collective& collective, const Shape& shape,
                                          const Split& split, int rank) {
  if (collective.sent) return collective.sent(shape, split, rank);
  const std::optional<Cost> claim = collective.claim(shape, split);
  return claim ? std::optional(claim->sent_bytes) : std::nullopt;
}

void embed(Schedule& schedule, const std::string& name, const Operands& operands) {
  const Collective& collective = find_collective(name);
  const Region region(schedule, name);
  collective.build(schedule, operands);
}

Schedule build(const Collective& collective, const Shape& shape, int rank, const Split& split) {
  Schedule schedule(rank, split.ranks, split.ranks_per_node);
  std::optional<Reversed> reversed;
  if (split.direction == Direction::reverse) reversed.emplace(schedule);
  collective.build(schedule, declare(schedule, collective.kind, shape, split));
  return schedule;
}

std::vector<Schedule> build_all(const Collective& collective, const Shape& shape, const Split& split) {
  std::vector<Schedule> schedules;
  schedules.reserve(split.ranks);
  for (int rank = 0; rank < split.ranks; ++rank) schedules.push_back(build(collective, shape, rank, split));
  return schedules;
}

}  // namespace baton
