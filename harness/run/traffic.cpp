// SPDX-License-Identifier: Apache-2.0
// Counts and claims of cases.
#include "harness/run/traffic.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/schedule/check.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton {

int possible_blocks(const Case& question, int asked) {
  return static_cast<int>(
      std::clamp<std::int64_t>(asked, 1, std::max<std::int64_t>(1, question.workload->state_rows())));
}

int blocks_of(const Case& question, const Link& link) {
  if (question.blocks != auto_blocks) return possible_blocks(question, question.blocks);
  return link.best_blocks(question.ranks, question.workload->state_bytes(), question.workload->state_rows());
}

std::string implementation_of(const std::vector<Schedule>& schedules) {
  for (const Schedule& schedule : schedules)
    for (const NativeCall& native : schedule.natives()) return native.name;
  return "schedule";
}

std::optional<Claim> traffic_of(const Case& question, int blocks, const std::vector<Schedule>& schedules) {
  const Counts counts = check(question.workload->name(), schedules);
  if (implementation_of(schedules) != "schedule") return question.workload->claim(question.split(blocks));
  const Claim counted{counts.busiest_sent_bytes(), counts.hops};
  require_claim(question, blocks, counted);
  return counted;
}

void require_claim(const Case& question, int blocks, const Claim& counted) {
  const auto claim = question.workload->claim(question.split(blocks));
  if (claim && (claim->sent_bytes != counted.sent_bytes || claim->hops != counted.hops))
    throw ScheduleError(fmt::format("{} claims {} bytes and {} hops, but its schedules have {} and {}",
                                    question.name(), claim->sent_bytes, claim->hops, counted.sent_bytes,
                                    counted.hops));
}

}  // namespace baton
