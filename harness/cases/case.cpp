// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/case.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/schedule/check.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/cases/memory.hpp"

namespace baton {

const char* to_string(Cadence mode) {
  switch (mode) {
    case Cadence::isolated: return "isolated";
    case Cadence::streaming: return "streaming";
    case Cadence::graph: return "graph";
  }
  return "?";
}

AxisValues Case::axes() const {
  AxisValues all{};
  const AxisValues of_workload = workload->axes();
  for (const AxisValue& one : of_workload)
    if (one.parts == in_name) all.add(one);
  all.add({"family", backend->family, in_contest});
  all.add({"executor", backend->name, in_name | in_group});
  all.add({"ranks", ranks});
  all.add({"ranks_per_node", ranks_per_node});
  all.add({"ranks_per_gpu", ranks_per_gpu});
  if (workload->is_layer() && backend->most_threads > 1) all.add({"threads_per_rank", threads_per_rank});
  for (const AxisValue& one : of_workload)
    if (one.parts != in_name) all.add(one);
  all.add({"cadence", to_string(cadence)});
  all.add({"cycle", cycle, in_name | in_group});
  const std::string cut = blocks == auto_blocks ? "auto" : std::to_string(blocks);
  all.add({"blocks_asked", cut, in_name, "blocks:" + cut});
  return all;
}

std::string Case::name() const { return axes().folded(in_name); }

std::string Case::key() const {
  Case first = *this;
  first.cycle = 0;
  return first.name();
}

std::string Case::comparison_group() const { return axes().folded(in_group); }

std::string Case::contest() const { return axes().folded(in_contest); }

int possible_blocks(const Case& bench_case, int asked) {
  return static_cast<int>(
      std::clamp<std::int64_t>(asked, 1, std::max<std::int64_t>(1, bench_case.workload->state_rows())));
}

std::string implementation_of(const std::vector<Schedule>& schedules) {
  for (const Schedule& schedule : schedules)
    for (const NativeCall& native : schedule.natives()) return native.name;
  return "schedule";
}

std::optional<Cost> cost_of(const Case& bench_case, int blocks, const std::vector<Schedule>& schedules) {
  const Counts counts = check(bench_case.workload->name(), schedules);
  if (implementation_of(schedules) != "schedule") return bench_case.workload->claim(bench_case.split(blocks));
  const Cost counted{counts.busiest_sent_bytes(), counts.hops};
  require_claim(bench_case, blocks, counted);
  return counted;
}

void require_claim(const Case& bench_case, int blocks, const Cost& counted) {
  const auto claim = bench_case.workload->claim(bench_case.split(blocks));
  if (!claim) return;
  if (claim->hops < 0 && claim->sent_bytes != counted.sent_bytes)
    throw ScheduleError(fmt::format("{} claims {} bytes, but its schedules have {}", bench_case.name(),
                                    claim->sent_bytes, counted.sent_bytes));
  if (claim->hops >= 0 && *claim != counted)
    throw ScheduleError(fmt::format("{} claims {} bytes and {} hops, but its schedules have {} and {}",
                                    bench_case.name(), claim->sent_bytes, claim->hops, counted.sent_bytes,
                                    counted.hops));
}

double Extent::schedule_bytes(int copies) const {
  constexpr double bytes_per_step = 600;  // measured: 310 to 540 at the peak of a dry run
  return steps * bytes_per_step * copies;
}

Extent extent_of(const Case& bench_case, int blocks) {
  constexpr int most_samples = 8;
  const Split split = bench_case.split(blocks);
  const auto extent = [&](int rank) {
    const Schedule schedule = bench_case.workload->build_rank(rank, split);
    double bytes = 0;
    for (const Buffer& buffer : schedule.buffers()) bytes += static_cast<double>(buffer.bytes());
    return Extent{static_cast<double>(schedule.steps().size()), bytes};
  };
  // The first and the last rank may differ from all others, which are spread over the rest.
  Extent all = extent(0), between;
  if (split.ranks == 1) return all;
  const Extent last = extent(split.ranks - 1);
  const int others = split.ranks - 2, samples = std::min(others, most_samples);
  for (int i = 0; i < samples; ++i) {
    const Extent one = extent(1 + static_cast<int>(std::int64_t{i} * others / samples));
    between = {between.steps + one.steps, between.buffer_bytes + one.buffer_bytes};
  }
  const double weight = samples == 0 ? 0 : static_cast<double>(others) / samples;
  return {all.steps + last.steps + weight * between.steps,
          all.buffer_bytes + last.buffer_bytes + weight * between.buffer_bytes};
}

Refusal lacks_memory(double bytes, int processes, double held) {
  const double needed = bytes / 0.6;  // the oracle, MPI and pages of files need memory too
  const FreeMemory free = free_memory(processes);
  if (needed <= free.bytes + held) return {};
  return fmt::format("needs {} of memory on this host, {} are left ({})", memory_words(needed),
                     memory_words(free.bytes + held), free.limit);
}

}  // namespace baton
