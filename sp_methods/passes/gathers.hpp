// SPDX-License-Identifier: Apache-2.0
// Tensors of several ranks, gathered by an embedded collective, and their gradients, which another
// one sums and scatters.
//
//   gather:   all = the own tensors of the ranks that take part, in their order
//   scatter:  own = the sum over these ranks of their `all`, its part for this rank
//
// Inside an `Among` scope its ranks take part, else all do. A rank alone moves nothing.
// Cost: that of the collective beneath, with the tensor in the place of a packed map.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sp_methods/passes/ring.hpp"

namespace baton {

/// The collectives beneath a method, by name: an all-gather and a reduce-scatter.
struct GatherNames {
  std::string gather;
  std::string scatter;
  bool is_ring = true;  ///< True if a rank passes on what it receives.

  int gather_hops(int ranks) const { return find_collective(gather).claim({}, {.ranks = ranks})->hops; }
  int scatter_hops(int ranks) const { return find_collective(scatter).claim({}, {.ranks = ranks})->hops; }
};

/// The names of an all-gather and a reduce-scatter around a ring.
inline const GatherNames ring_gathers{"ring_all_gather", "ring_reduce_scatter"};
/// The names of an all-gather and a reduce-scatter in one hop.
inline const GatherNames direct_gathers{"direct_all_gather", "direct_reduce_scatter", false};

/// Memory for the tensors of `ranks` ranks, `count` elements in all. The tensor of a rank alone is
/// its own memory.
inline Slice memory_of_all(Schedule& schedule, std::string name, const Slice& own, int ranks,
                           std::int64_t count) {
  return ranks == 1 ? own : schedule.scratch(std::move(name), count, own.dtype);
}
/// Memory for the tensors of `ranks` ranks, all as large as `own`.
inline Slice memory_of_all(Schedule& schedule, std::string name, const Slice& own, int ranks) {
  return memory_of_all(schedule, std::move(name), own, ranks, ranks * own.count);
}

/// The keys and values of `ranks` ranks, called "keys" and "values".
inline RingBlock keys_and_values_of_all(Schedule& schedule, const LayerTensors& x, int ranks) {
  return {memory_of_all(schedule, "keys", x.k, ranks), memory_of_all(schedule, "values", x.v, ranks), {}};
}

/// Gathers the tensors `own` of all ranks into `all`, whatever their type. Empty tensors need no
/// step. `counts` are the elements of each rank's tensor, if they differ.
inline void gather(Schedule& schedule, const GatherNames& names, const Slice& all, const Slice& own,
                   const std::vector<std::int64_t>& counts = {}) {
  if (schedule.ranks() > 1 && !all.empty())
    embed(schedule, names.gather, {.own = {{}, own, 1}, .into = all, .into_counts = counts});
}

/// Sets `own` to this rank's part of the sum over all ranks of `all`. Both are f32 and differ;
/// empty tensors need no step. `counts` are the elements of each rank's part, if they differ.
inline void scatter(Schedule& schedule, const GatherNames& names, const Slice& own, const Slice& all,
                    const std::vector<std::int64_t>& counts = {}) {
  if (all.empty()) return;
  if (schedule.ranks() > 1)
    embed(schedule, names.scatter, {.own = {{}, all, 1}, .into = own, .own_counts = counts});
  if (schedule.ranks() == 1) schedule.copy(own, all);
}

}  // namespace baton
