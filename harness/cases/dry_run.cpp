// SPDX-License-Identifier: Apache-2.0
// Dry runs.
#include "harness/cases/dry_run.hpp"

#include <fmt/format.h>

#include "collectives/schedule/check.hpp"
#include "harness/process/launch.hpp"
#include "harness/run/traffic.hpp"

namespace baton {

void print_dry_run(const Options& options) {
  if (launched_rank() != 0) return;
  fmt::print("{:<96} {:>14} {:>6} {:>10}\n", "case (blocks:auto counted as 16)", "busiest sends", "hops",
             "messages");
  for (const Case& question : options.cases) {
    if (const Refusal refusal = question.workload->unsupported(question.ranks)) {
      fmt::print("{:<96} skipped: {}\n", question.name(), refusal.reason());
      continue;
    }
    const int blocks = possible_blocks(question, question.blocks == auto_blocks ? 16 : question.blocks);
    const auto schedules = question.workload->build(question.split(blocks));
    const auto traffic = traffic_of(question, blocks, schedules);
    std::int64_t messages = 0;
    for (const Traffic& rank : check(question.workload->name(), schedules).ranks) messages += rank.messages;
    const auto or_unknown = [&](std::int64_t count) {
      return traffic ? fmt::format("{}", count) : "unknown";
    };
    fmt::print("{:<96} {:>14} {:>6} {:>10}\n", question.name(),
               or_unknown(traffic.value_or(Claim{}).sent_bytes), or_unknown(traffic.value_or(Claim{}).hops),
               messages / 2);
    if (!options.print_schedules) continue;
    for (const Schedule& schedule : schedules) fmt::print("{}", text(schedule));
  }
}

}  // namespace baton
