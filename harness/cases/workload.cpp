// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/workload.hpp"

#include "collectives/schedule/errors.hpp"
#include "harness/cases/verify.hpp"

namespace baton {

std::string Workload::title() const {
  std::string asked;
  for (const AxisValue& one : axes())
    if (one.parts == in_name && (one.key == "scan" || one.key == "shares"))
      asked += (asked.empty() ? " (" : ", ") + std::get<std::string>(one.value);
  return asked.empty() ? name() : name() + asked + ")";
}

std::string Workload::variant_name() const {
  for (const AxisValue& one : axes())
    if (one.parts == in_name && (one.key == "mode" || one.key == "line")) return one.text();
  return {};
}

std::string Workload::native() const {
  constexpr int ranks = 2;
  if (unsupported(ranks)) return {};
  try {
    const Schedule schedule = build_rank(0, {.ranks = ranks, .blocks = 1});
    return schedule.natives().empty() ? "" : schedule.natives()[0].name;
  } catch (const ScheduleError&) {
    return {};  // its proof says what is wrong
  }
}

Comparison Workload::verify(Executor& executor, const std::vector<Schedule>& schedules, std::uint64_t seed,
                            Oracles& oracles) const {
  load(executor, schedules, seed, oracles);
  executor.synchronise();
  executor.run();
  return compare(executor, schedules, seed, oracles);
}

std::vector<Schedule> Workload::build(const Split& split) const {
  std::vector<Schedule> schedules;
  schedules.reserve(split.ranks);
  for (int rank = 0; rank < split.ranks; ++rank) schedules.push_back(build_rank(rank, split));
  return schedules;
}

}  // namespace baton
