// SPDX-License-Identifier: Apache-2.0
#include "harness/options/collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collectives/schedule/errors.hpp"
#include "harness/cases/collective_workload.hpp"
#include "harness/options/checks.hpp"
#include "harness/options/common_options.hpp"
#include "harness/options/grid.hpp"
#include "harness/options/names.hpp"

namespace baton {
namespace {

/// The bench's own flags as the user wrote them.
struct RawCollectives {
  explicit RawCollectives(Flags& flags) : sizes(flags) {}

  std::vector<std::string> collectives{"all"};
  std::vector<std::string> directions{"forward"};
  std::vector<std::string> maps{"diagonal"};
  std::vector<std::int64_t> heads{Shape{}.heads};
  AxisFlags<Shape> sizes;
  std::uint64_t min_bytes = 0;  // 0 for the single shape that the other flags give
  std::uint64_t max_bytes = 0;
  int factor = 2;
  bool gives_tokens = false;
};

const Choices<std::vector<Direction>> direction_choices{{"forward", {Direction::forward}},
                                                        {"reverse", {Direction::reverse}},
                                                        {"both", {Direction::forward, Direction::reverse}}};

const Choices<MapKind> map_choices{
    {"diagonal", MapKind::diagonal}, {"scalar", MapKind::scalar}, {"affine", MapKind::affine}};

/// The number of tokens whose keys and values are about as many bytes as a state.
std::int64_t tokens_like_a_state(const Shape& shape) {
  const double tokens =
      static_cast<double>(shape.d_k * shape.d_v) / static_cast<double>(shape.d_k + shape.d_v);
  return std::max<std::int64_t>(1, std::llround(tokens));
}

/// The shape of collectives of a kind. In a sweep over sizes of a state, keys and values get that
/// size too unless --tokens is given.
Shape shape_for(Kind kind, Shape shape, MapKind map, const RawCollectives& raw) {
  shape.map = moves_tokens(kind) ? MapKind::diagonal : map;
  if (shape.map == MapKind::affine) check_size(shape.heads, shape.d_k, shape.d_k);
  if (moves_tokens(kind) && raw.min_bytes > 0 && !raw.gives_tokens) shape.tokens = tokens_like_a_state(shape);
  if (moves_tokens(kind)) check_size(shape.tokens, shape.heads, shape.d_k + shape.d_v);
  return shape;
}

/// The numbers of heads that a sweep over state sizes has, or those that were given.
std::vector<std::int64_t> heads_of(const RawCollectives& raw, const Shape& shape) {
  if (raw.min_bytes == 0) return raw.heads;
  const std::uint64_t max_bytes = raw.max_bytes == 0 ? raw.min_bytes : raw.max_bytes;
  if (max_bytes < raw.min_bytes) throw UsageError("--max-bytes is below --min-bytes");
  const std::uint64_t head_bytes = shape.d_k * shape.d_v * element_bytes;
  std::vector<std::int64_t> ladder;
  for (std::uint64_t bytes = raw.min_bytes; bytes <= max_bytes; bytes *= raw.factor) {
    if (bytes % head_bytes != 0)
      throw UsageError(
          fmt::format("--min-bytes: a state of {} bytes cannot be cut into heads of {} bytes ({} x {} f32); "
                      "--d-k and --d-v make them smaller",
                      bytes, head_bytes, shape.d_k, shape.d_v));
    ladder.push_back(static_cast<std::int64_t>(bytes / head_bytes));
  }
  return ladder;
}

/// The shapes that the flags combine to, with the sizes of a state changing fastest.
std::vector<Shape> shapes(const RawCollectives& raw) {
  std::vector<Shape> all;
  for (const Shape& size : raw.sizes.points({})) {
    const Grid<Shape> states = Grid<Shape>(size).vary(
        "--heads", heads_of(raw, size), [](Shape& one, std::int64_t heads) { one.heads = heads; });
    for (const Shape& shape : states.points()) {
      check_size(shape.heads, shape.d_k, shape.d_v);
      all.push_back(shape);
    }
  }
  return all;
}

/// The directions that the flags name, each once.
std::vector<Direction> directions(const RawCollectives& raw) {
  std::vector<Direction> all;
  for (const std::string& word : distinct("--direction", raw.directions))
    for (const Direction direction : value_of(direction_choices, word))
      if (std::find(all.begin(), all.end(), direction) == all.end()) all.push_back(direction);
  return all;
}

/// The named collectives of one kind.
std::vector<std::shared_ptr<const Workload>> workloads(const std::vector<std::string>& names, Kind kind,
                                                       const Shape& shape, Direction direction) {
  std::vector<std::shared_ptr<const Workload>> all;
  for (const std::string& name : names)
    if (find_collective(name).kind == kind)
      all.push_back(collective_workload(find_collective(name), shape, direction));
  return all;
}

/// The kinds of the named collectives, in the order of their tables.
std::vector<Kind> kinds_of(const std::vector<std::string>& names) {
  std::vector<Kind> kinds;
  for (Kind kind : {Kind::exclusive_scan, Kind::all_gather, Kind::reduce_scatter, Kind::exchange,
                    Kind::all_to_all, Kind::to_zigzag})
    if (std::any_of(names.begin(), names.end(),
                    [&](const std::string& name) { return find_collective(name).kind == kind; }))
      kinds.push_back(kind);
  return kinds;
}

/// The comparison groups, one for each kind, shape, kind of map and direction. Only scans have a
/// reverse, and collectives that move tokens have no maps.
std::vector<std::vector<std::shared_ptr<const Workload>>> comparison_groups(
    const RawCollectives& raw, const std::vector<std::string>& names) {
  std::vector<std::vector<std::shared_ptr<const Workload>>> all;
  const std::vector<MapKind> maps = resolve_values("map", raw.maps, map_choices);
  const std::vector<Kind> kinds = kinds_of(names);
  const std::vector<Shape> all_shapes = shapes(raw);
  for (const Shape& shape : all_shapes)
    for (Direction direction : directions(raw))
      for (Kind kind : kinds) {
        if (direction == Direction::reverse && kind != Kind::exclusive_scan) continue;
        if (shape.tokens != all_shapes.front().tokens && !moves_tokens(kind)) continue;
        for (MapKind map : maps)
          if (map == maps.front() || !moves_tokens(kind))
            all.push_back(workloads(names, kind, shape_for(kind, shape, map, raw), direction));
      }
  return all;
}

void declare(Flags& flags, RawCollectives& raw) {
  // Multiplied by a factor of 2^20 it still fits in 64 bits.
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 43;
  flags.begin(FlagGroup::what);
  flags.add("--collectives", raw.collectives, "names, or 'all'").list();
  flags.add_key("direction", raw.directions).list().one_of(words_of(direction_choices));
  flags.add_key("map", raw.maps).list();
  flags.begin(FlagGroup::sizes);
  Flag heads = flags.add_key("heads", raw.heads).list().size();
  raw.sizes.add<std::int64_t>("d_k", {Shape{}.d_k}, [](Shape& one, auto channels) { one.d_k = channels; })
      .size();
  raw.sizes.add<std::int64_t>("d_v", {Shape{}.d_v}, [](Shape& one, auto channels) { one.d_v = channels; })
      .size();
  raw.sizes.add<std::int64_t>("tokens", {Shape{}.tokens}, [](Shape& one, auto count) { one.tokens = count; })
      .also(
          "for collectives that move keys, values or hidden states; with -b the default makes keys and "
          "values as large as a state")
      .sets(raw.gives_tokens)
      .tokens();
  Flag least =
      flags.add("-b,--min-bytes", raw.min_bytes, "smallest state of a rank; sets the number of heads")
          .bytes(most_bytes);
  flags.add("-e,--max-bytes", raw.max_bytes, "largest state of a rank").bytes(most_bytes).needs(least);
  flags.add("-f,--factor", raw.factor, "factor between sizes").range(2, 1 << 20).needs(least);
  least.excludes(heads);
}

void print_list() {
  fmt::print("collectives\n");
  for (const Collective* collective : collectives())
    fmt::print("  {:<24} {:<15} {}\n", collective->name, to_string(collective->kind), collective->summary);
}

}  // namespace

std::optional<Options> parse_collective_options(int argc, char** argv) {
  CommonOptions common(
      "collective_bench",
      "Times the collectives of sequence-parallel attention. Every result is verified, and every row has a "
      "lower bound.",
      "  collective_bench --collectives all_scan,ring_scan,all_gather_scan -b 64K -e 16M -f 4 --launches 3\n"
      "  collective_bench --executor simulator --topology topologies/dgx-h100-32x8.json --ranks 64,256");
  RawCollectives own(common.flags());
  declare(common.flags(), own);
  if (!common.parse(argc, argv, print_list)) return std::nullopt;
  const std::vector<std::string> known = names_of(collectives());
  common.options().longest_name = longest_of(known);
  const auto names = resolve_workloads("collective", own.collectives, known, common.options().baseline);
  Options options = common.with_cases(comparison_groups(own, names));
  if (options.cases.empty())
    throw UsageError("--direction reverse leaves nothing to run: only exclusive scans have a reverse");
  return options;
}

}  // namespace baton
