// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/proof.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "collectives/schedule/check.hpp"
#include "collectives/schedule/listing.hpp"
#include "collectives/schedule/words.hpp"

namespace baton {
namespace {

/// A shape whose state every rank can own a part of: rows of diagonal maps, or heads of other maps.
/// There are more of them than ranks and blocks, so that parts differ in size.
Shape shape_for(int ranks, MapKind map = MapKind::diagonal) {
  const int parts = std::max(ranks, 16) + 3;
  if (map == MapKind::diagonal) return {.heads = 1, .d_k = parts, .d_v = 2, .tokens = 1};
  return {.heads = parts, .d_k = 2, .d_v = 3, .tokens = 1, .map = map};
}

/// True if the schedules depend on how ranks lie on nodes.
bool looks_at_nodes(const Collective& collective) {
  constexpr Split one_node{.ranks = 9}, nodes{.ranks = 9, .ranks_per_node = 4};
  for (int rank = 0; rank < one_node.ranks; ++rank)
    if (text(build(collective, shape_for(9), rank, one_node)) !=
        text(build(collective, shape_for(9), rank, nodes)))
      return true;
  return false;
}

std::string name_of(const Collective& collective, const Split& split, MapKind map) {
  std::string name = fmt::format("{}, {} ranks", collective.name, split.ranks);
  if (map != MapKind::diagonal) name += fmt::format(", {} maps", to_string(map));
  if (split.ranks_per_node > 0) name += fmt::format(", {} a node", split.ranks_per_node);
  if (split.direction == Direction::reverse) name += ", reverse";
  return split.blocks > 1 ? name + fmt::format(", {} blocks", split.blocks) : name;
}

/// Proves one setting of `collective` on words; false if its schedules have no words. Throws
/// ScheduleError at the first wrong word.
bool prove_at(const Collective& collective, const Split& split, MapKind map) {
  const Shape shape = shape_for(split.ranks, map);
  const std::vector<Schedule> schedules = build_all(collective, shape, split);
  if (!has_words(schedules)) return false;
  const bool is_reversed = split.direction == Direction::reverse;
  MapForm form = shape.form();
  form.transposed = is_reversed && map == MapKind::affine;
  run_on_words({.name = name_of(collective, split, map),
                .rows = shape.rows(),
                .row = shape.row(),
                .is_reversed = is_reversed,
                .form = form},
               schedules);
  return true;
}

/// All settings of `collective` apart from the number of ranks: nodes, blocks and directions.
std::vector<Split> settings_of(const Collective& collective) {
  std::vector<Split> settings;
  for (const int ranks_per_node : looks_at_nodes(collective) ? std::vector{0, 1, 3, 8} : std::vector{0})
    for (const int blocks : collective.cuts_blocks ? std::vector{1, 4, 16} : std::vector{1})
      for (const Direction direction : {Direction::forward, Direction::reverse})
        settings.push_back({1, blocks, ranks_per_node, direction});
  return settings;
}

/// Builds and checks the schedules of a case, with its claim. Throws ScheduleError.
void check_case(const Case& bench_case) {
  if (!bench_case.backend->is_measured || bench_case.workload->unsupported(bench_case.ranks)) return;
  const int blocks = dry_blocks(bench_case);
  if (lacks_memory(extent_of(bench_case, blocks).schedule_bytes())) return;
  cost_of(bench_case, blocks, bench_case.workload->build(bench_case.split(blocks)));
}

/// Throws UsageError if a dry run of `all` would take many minutes. Cases that do not fit in memory
/// take no time.
void refuse_long_dry_run(const std::vector<Case>& all) {
  constexpr double most_steps = 3e7;  // about two microseconds each on one core
  double steps = 0;
  for (const Case& bench_case : all) {
    if (bench_case.workload->unsupported(bench_case.ranks)) continue;
    const Extent extent = extent_of(bench_case, dry_blocks(bench_case));
    if (!lacks_memory(extent.schedule_bytes())) steps += extent.steps;
    if (steps > most_steps)
      throw UsageError(
          fmt::format("--dry-run: these {} cases have more than {:.0f} million steps to check; ask for "
                      "fewer --ranks, --blocks or algorithms at once",
                      all.size(), most_steps / 1e6));
  }
}

void print_dry_line(const Case& bench_case, bool with_schedules) {
  if (const Refusal refusal = bench_case.workload->unsupported(bench_case.ranks)) {
    fmt::print("{:<96} skipped: {}\n", bench_case.name(), refusal.reason());
    return;
  }
  const int blocks = dry_blocks(bench_case);
  if (const Refusal refusal = lacks_memory(extent_of(bench_case, blocks).schedule_bytes())) {
    fmt::print("{:<96} skipped: {}\n", bench_case.name(), refusal.reason());
    return;
  }
  const auto schedules = bench_case.workload->build(bench_case.split(blocks));
  const auto cost = cost_of(bench_case, blocks, schedules);
  std::int64_t message_ends = 0;
  for (const Traffic& rank : check(bench_case.workload->name(), schedules).ranks)
    message_ends += rank.messages;
  const auto or_unknown = [&](std::int64_t count) { return cost ? fmt::format("{}", count) : "unknown"; };
  fmt::print("{:<96} {:>14} {:>6} {:>10}\n", bench_case.name(), or_unknown(cost.value_or(Cost{}).sent_bytes),
             or_unknown(cost.value_or(Cost{}).hops), message_ends / 2);
  if (!with_schedules) return;
  for (const Schedule& schedule : schedules) fmt::print("{}", text(schedule));
}

/// A scan and the kind of its maps.
using Scan = std::pair<std::string, MapKind>;

std::set<Scan> kinds_of_scans(const Workload& workload) {
  std::set<Scan> scans;
  for (const std::string& name : scans_of(workload)) scans.emplace(name, workload.map());
  return scans;
}

Refusal prove_scan(const Scan& scan) {
  return baton::prove_scan(find_collective(scan.first), 8, scan.second);
}

void print_proof(const Scan& scan) {
  const Refusal refusal = prove_scan(scan);
  const std::string maps =
      scan.second == MapKind::diagonal ? "" : fmt::format(" with {} maps", to_string(scan.second));
  fmt::print("# {}{}: {}\n", scan.first, maps,
             refusal ? "not run on words: " + refusal.reason()
                     : fmt::format("right on words at 2 to {} ranks", most_proved_ranks));
}

}  // namespace

int dry_blocks(const Case& bench_case) {
  return possible_blocks(bench_case, bench_case.blocks == auto_blocks ? 16 : bench_case.blocks);
}

Refusal prove_scan(const Collective& collective, int all_settings_to, MapKind map) {
  const std::vector<Split> settings = settings_of(collective);
  for (int ranks = 2; ranks <= most_proved_ranks; ++ranks)
    for (std::size_t i = 0; i < settings.size(); ++i) {
      if (ranks > all_settings_to && ranks % settings.size() != i) continue;
      Split split = settings[i];
      split.ranks = ranks;
      if (!prove_at(collective, split, map))
        return "its local work is a native or a kernel, which has no words";
    }
  return {};
}

std::set<std::string> scans_of(const Workload& workload) {
  std::set<std::string> scans;
  const auto small = workload.reduced(2);
  if (small->unsupported(2)) return scans;
  const auto is_scan = [](const std::string& name) {
    return !name.empty() && find_collective(name).kind == Kind::exclusive_scan;
  };
  for (const Schedule& schedule : small->build({.ranks = 2}))
    std::copy_if(schedule.regions().begin(), schedule.regions().end(), std::inserter(scans, scans.end()),
                 is_scan);
  if (workload.axes().text("kind") == to_string(Kind::exclusive_scan)) scans.insert(workload.name());
  return scans;
}

std::vector<std::string> prove(std::span<const Case> all) {
  std::map<Scan, std::string> wrong;  // the error of each scan, empty for a right one
  const auto error_of = [](const auto& proof) -> std::string {
    try {
      proof();
      return {};
    } catch (const ScheduleError& error) {
      return error.what();
    }
  };
  std::vector<std::string> errors;
  for (const Case& bench_case : all) {
    std::string error = error_of([&] {
      for (const Scan& scan : kinds_of_scans(*bench_case.workload)) {
        const auto [known, is_new] = wrong.try_emplace(scan);
        if (is_new) known->second = error_of([&] { prove_scan(scan); });
        if (!known->second.empty()) throw ScheduleError(known->second);
      }
      check_case(bench_case);
    });
    errors.push_back(std::move(error));
  }
  return errors;
}

void print_dry_run(const std::vector<Case>& all, bool with_schedules) {
  refuse_long_dry_run(all);
  fmt::print("{:<96} {:>14} {:>6} {:>10}\n", "case (blocks:auto counted as 16)", "busiest sends", "hops",
             "messages");
  for (const Case& bench_case : all) print_dry_line(bench_case, with_schedules);
  std::set<Scan> scans;
  for (const Case& bench_case : all) scans.merge(kinds_of_scans(*bench_case.workload));
  for (const Scan& scan : scans) print_proof(scan);
}

}  // namespace baton
