// SPDX-License-Identifier: Apache-2.0
// Traced rounds.
#include "harness/run/traced_round.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "harness/process/files.hpp"
#include "harness/process/machine.hpp"
#include "harness/run/trace.hpp"

namespace baton {
void try_trace(const Options& options) {
  const std::string& path = options.trace;
  if (path.empty()) return;
  if (options.cases.size() != 1)
    throw UsageError(
        fmt::format("--trace takes a single case, but these flags ask for {}", options.cases.size()));
  require_writable(path, "a trace");
}

std::string trace_round(const std::string& path, const Record& record, Testbed& testbed) {
  if (path.empty()) return {};
  if (!record.is_timed()) return "# no trace: nothing was timed\n";
  const std::vector<StepTime> times = testbed.run_traced(record);
  const Case& question = record.question;
  const auto schedules = question.workload->build(question.split(record.blocks));
  const bool has_steps = std::any_of(schedules.begin(), schedules.end(),
                                     [](const Schedule& schedule) { return !schedule.steps().empty(); });
  if (times.empty() && has_steps)
    return fmt::format("# no trace: the executor '{}' does not tell when its steps ran\n", question.executor);
  const TraceTitle title{question.name(), question.executor, record.blocks, commit()};
  if (testbed.team().rank() == 0) write_text(path, chrome_trace(schedules, times, title).dump() + "\n");
  return fmt::format(
      "# trace of one more round: {} (ui.perfetto.dev shows it, plots/space_time.py draws it)\n", path);
}

}  // namespace baton
