// SPDX-License-Identifier: Apache-2.0
// A collective: its kind fixes its buffers and its meaning, and its text records the schedule.
#pragma once

#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "collectives/schedule/schedule.hpp"

namespace baton {

/// The result that a collective computes from the contribution of every rank.
enum class Kind {
  /// own: a map [heads*d_k] + [heads*d_k, d_v], or one of another kind (Shape::map). into: the
  /// state after the maps of all ranks before this one, starting from zero. The first rank leaves
  /// its `into` untouched.
  exclusive_scan,
  /// own: a run of elements, a packed map in collective_bench. into: the runs of all ranks, in rank
  /// order.
  all_gather,
  /// own: a run of elements for each rank, in rank order, each as long as a packed map in
  /// collective_bench. into: the f32 sum over all ranks of the runs for this rank.
  reduce_scatter,
  /// own: keys and values [tokens, heads*(d_k + d_v)]. into: the keys and values of the next rank,
  /// which arrive last because they pass through every rank.
  exchange,
  /// own: one block for each rank, in rank order, together about as large as a rank's keys and
  /// values. into: the blocks that all ranks have for this one, in rank order.
  all_to_all,
  /// own: hidden states [tokens, heads*d_k] of the rank's contiguous tokens. into: the hidden
  /// states of its tokens in a zigzag layout, pieces r and 2P-1-r of 2P.
  to_zigzag,
};

/// True if what ranks contribute grows with their tokens: keys and values or hidden states,
/// not a state or a map.
constexpr bool moves_tokens(Kind kind) {
  return kind == Kind::exchange || kind == Kind::all_to_all || kind == Kind::to_zigzag;
}

enum class Direction { forward, reverse };

const char* to_string(Kind kind);
const char* to_string(Direction direction);

/// The shape of one layer's attention on one rank.
struct Shape {
  std::int64_t heads = 32;
  std::int64_t d_k = 128;
  std::int64_t d_v = 128;
  std::int64_t tokens = 8192;
  /// The kind of a rank's map. A state is [heads, d_k, d_v] under decays [heads, d_k] (diagonal)
  /// or [heads] (scalar), and values first, [heads, d_v, d_k], under matrices [heads, d_k, d_k]
  /// (affine): what a matrix acts on is then a row.
  MapKind map = MapKind::diagonal;

  /// Number of rows of a state: heads * d_k, or heads * d_v if the map is affine.
  std::int64_t rows() const { return heads * (map == MapKind::affine ? d_v : d_k); }
  /// Number of elements of a row: d_v, or d_k if the map is affine.
  std::int64_t row() const { return map == MapKind::affine ? d_k : d_v; }
  /// Number of decays or matrices of a map: one a row if the map is diagonal, else one a head.
  std::int64_t shares() const { return map == MapKind::diagonal ? rows() : heads; }
  /// Number of elements of a decay or a matrix: 1, or d_k^2 if the map is affine.
  std::int64_t share_decay() const { return form().unit(row()); }
  /// Number of elements of the state that one decay or matrix acts on.
  std::int64_t share_state() const { return state_elements() / shares(); }
  MapForm form() const { return {.kind = map, .share = rows() / shares()}; }
  std::int64_t state_elements() const { return heads * d_k * d_v; }
  std::int64_t decay_elements() const { return shares() * share_decay(); }
  std::int64_t map_elements() const { return decay_elements() + state_elements(); }
  std::int64_t key_value_elements() const { return tokens * heads * (d_k + d_v); }
  /// A block of an all-to-all: keys and values cut into one block a rank, rounded up.
  std::int64_t block_elements(int ranks) const { return (key_value_elements() + ranks - 1) / ranks; }
  /// Half of a rank's hidden states, rounded up: a piece of the sequence in a zigzag layout.
  std::int64_t piece_elements() const { return (tokens * heads * d_k + 1) / 2; }
  std::int64_t state_bytes() const { return state_elements() * element_bytes; }
};

/// How a sequence is split.
struct Split {
  int ranks = 1;
  /// The number of blocks that a state is cut into, if the collective cuts it.
  int blocks = 1;
  /// Ranks on a full node. Nodes are filled one after the other; 0 puts all ranks on one node.
  int ranks_per_node = 0;
  /// The end from which ranks are counted. A claim depends on it if the last node is partly filled:
  /// in reverse, that node comes first.
  Direction direction = Direction::forward;

  /// How the ranks lie on nodes, in scan order.
  Nodes nodes() const { return {ranks, ranks_per_node, direction == Direction::reverse}; }
};

/// The operands of a collective's text: this rank's contribution and the place of the result.
struct Operands {
  Map own;
  Slice into;
  /// The number of blocks that the state is cut into, if the collective cuts it.
  int blocks = 1;
  /// Number of elements of each rank's part of `own` and of `into`, in rank order; empty if parts
  /// are equal.
  std::vector<std::int64_t> own_counts = {}, into_counts = {};
};

/// The part of a rank in a slice whose parts have `counts` elements, or are equal if it is empty.
inline Slice part_of(const Slice& all, const std::vector<std::int64_t>& counts, int rank, int ranks) {
  if (counts.empty()) return all.block(rank, ranks);
  return all.part(std::accumulate(counts.begin(), counts.begin() + rank, std::int64_t{0}), counts[rank]);
}

/// Cost of a collective, as claimed by its author or counted from its schedules.
struct Cost {
  /// Largest number of bytes that a rank sends.
  std::int64_t sent_bytes = 0;
  /// Messages on the longest chain of messages that wait for one another.
  int hops = 0;

  bool operator==(const Cost&) const = default;
};

/// A named algorithm of one kind of collective.
struct Collective {
  std::string name;
  Kind kind = Kind::exclusive_scan;
  /// One line: its origin and how it works.
  std::string summary;
  std::function<void(Schedule&, const Operands&)> build;
  /// Claimed cost; the function must be set. It returns nothing if a library chooses its own
  /// algorithm.
  std::function<std::optional<Cost>(const Shape&, const Split&)> claim;
  /// Bytes that `rank`, counted in scan order, sends; null if every rank sends as many as the
  /// busiest. A method that runs the collective in both directions adds what each rank sends.
  std::function<std::int64_t(const Shape&, const Split&, int rank)> sent = nullptr;
  /// True if the schedule depends on `Operands::blocks`.
  bool cuts_blocks = false;
  /// True if the collective's native takes maps of every kind, false if it takes diagonal maps
  /// alone.
  bool native_takes_all_maps = false;
};

/// Adds a collective to the registry, before `main`: `const Registered
/// all_scan_registered{{...}};`. If the name is taken, or it has no claim, the program ends with
/// exit code 2 and a text that says so.
struct Registered {
  explicit Registered(Collective collective);
};

/// All registered collectives, by kind and name.
std::vector<const Collective*> collectives();

/// The collective called `name`. Throws UsageError if there is none.
const Collective& find_collective(const std::string& name);

/// Bytes that `rank`, counted in scan order, sends according to the author of `collective`; empty
/// if the author does not say.
std::optional<std::int64_t> claimed_bytes(const Collective& collective, const Shape& shape,
                                          const Split& split, int rank);

/// Records the collective called `name` as a part of `schedule`. Throws UsageError if there is
/// none.
void embed(Schedule& schedule, const std::string& name, const Operands& operands);

/// One rank's schedule of `collective`, with the buffers of its kind: inputs "own", outputs "into".
/// In reverse the matrices of an affine map act transposed.
Schedule build(const Collective& collective, const Shape& shape, int rank, const Split& split);

/// The schedules of all ranks.
std::vector<Schedule> build_all(const Collective& collective, const Shape& shape, const Split& split);

}  // namespace baton
