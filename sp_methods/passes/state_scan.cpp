// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/passes/state_scan.hpp"

#include <algorithm>

#include "collectives/collective.hpp"

namespace baton {

std::optional<ClaimedScans> claimed_scans(const std::string& scan, const Shape& shape, Split split,
                                          const std::vector<Direction>& directions) {
  ClaimedScans all;
  std::vector<std::int64_t> sent(split.ranks, 0);
  for (const Direction direction : directions) {
    split.direction = direction;
    const auto claim = find_collective(scan).claim(shape, split);
    if (!claim) return std::nullopt;
    all.hops.push_back(claim->hops);
    for (int rank = 0; rank < split.ranks; ++rank) {
      const int home = direction == Direction::forward ? rank : split.ranks - 1 - rank;
      sent[home] += claimed_bytes(find_collective(scan), shape, split, rank).value();
    }
  }
  all.bytes = *std::max_element(sent.begin(), sent.end());
  return all;
}

MapUse map_use(const Schedule& schedule, const std::string& scan, const Layer& layer, Direction direction) {
  const int rank = schedule.home_rank(), ranks = schedule.ranks();
  if (0 < rank && rank < ranks - 1) return {true, true};
  const Shape shape = shape_of_maps(layer, layer.share.heads / layer.groups);
  const Split split{ranks, layer.blocks, schedule.ranks_per_node(), direction};
  const Schedule alone = build(find_collective(scan), shape, rank, split);
  const Slice own = alone.buffer("own"), matrices = own.part(0, shape.decay_elements());
  const Slice states = own.part(matrices.count, shape.state_elements());
  MapUse use;
  for (const Step& step : alone.steps())
    for (const Slice& read : step.reads) {
      use.matrix = use.matrix || read.overlaps(matrices);
      use.state = use.state || read.overlaps(states);
    }
  return use;
}

}  // namespace baton
