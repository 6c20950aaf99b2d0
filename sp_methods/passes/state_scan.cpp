// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/passes/state_scan.hpp"

#include <algorithm>

#include "collectives/collective.hpp"

namespace baton {

std::optional<ClaimedScans> claimed_scans(const std::string& scan, const Shape& shape, Split split,
                                          const std::vector<Direction>& directions) {
  ClaimedScans all{.sent = std::vector<std::int64_t>(split.ranks, 0), .hops = {}};
  for (const Direction direction : directions) {
    split.direction = direction;
    const auto claim = find_collective(scan).claim(shape, split);
    if (!claim) return std::nullopt;
    all.hops.push_back(claim->hops);
    for (int rank = 0; rank < split.ranks; ++rank) {
      const int home = direction == Direction::forward ? rank : split.ranks - 1 - rank;
      all.sent[home] += claimed_bytes(find_collective(scan), shape, split, rank).value();
    }
  }
  return all;
}

std::int64_t busiest(const ClaimedScans& scans, int times, const std::vector<std::int64_t>& beside) {
  std::int64_t most = 0;
  for (std::size_t rank = 0; rank < beside.size(); ++rank)
    most = std::max(most, times * scans.sent[rank] + beside[rank]);
  return most;
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

bool maps_states(const Layer& layer, Direction direction, int rank, int ranks) {
  const bool starts = rank == 0 && comes_in(layer.states);
  const bool ends = rank == ranks - 1 && goes_out(layer.states);
  if (ranks == 1) return direction == Direction::forward ? ends : starts;
  return starts || ends;
}

Refusal unsupported_maps(const Layer& layer, const std::string& scan) {
  if (Refusal reason = layer.kernels.unsupported(layer.dtype, {layer.share.d_k, layer.share.d_v}))
    return reason;
  const bool is_native =
      !scan.empty() && !build(find_collective(scan), {1, 1, 1, 1}, 0, {.ranks = 2}).natives().empty();
  if (!has_matrices(layer.rule) || !is_native) return {};
  return "the native " + scan + " takes diagonal maps, not those of a " + to_string(layer.rule) + " rule";
}

void record_link(Schedule& s, LinearPass& pass) {
  const int P = s.ranks(), r = s.rank();
  for (int g = 0; g < pass.groups() && r > 0; ++g) s.recv(pass.incoming(g).state, r - 1);
  s.fence();
  for (int g = 0; g < pass.groups(); ++g) pass.record_map(g);
  pass.record_overlappable();
  for (int g = 0; g < pass.groups(); ++g) pass.record_outputs(g);
  s.fence();
  for (int g = 0; g < pass.groups() && r + 1 < P; ++g) s.send(r + 1, state_behind(s, pass, g).state);
}

Map state_behind(Schedule& s, const LinearPass& pass, int group) {
  const Map own = pass.map(group).only_state();
  if (!pass.state_comes_in()) return own;
  const Map carry = s.scratch_map("carry", own).only_state();
  pass.record_behind(group, carry.state);
  return carry;
}

}  // namespace baton
