// SPDX-License-Identifier: Apache-2.0
#include "harness/run/runner.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/cases/verify.hpp"
#include "harness/options/options.hpp"
#include "harness/process/output.hpp"
#include "harness/process/system.hpp"
#include "harness/record/trace.hpp"

namespace baton {
namespace {

class UnavailableRunner : public CaseRunner {
 public:
  UnavailableRunner(const Options& options, Refusal refusal, Team team)
      : CaseRunner(std::move(team)), options_(options), refusal_(std::move(refusal)) {}

  std::string description() const override { return {}; }
  Prepared prepare(const Case& bench_case) override {
    Prepared prepared;
    prepared.bench_case = bench_case;
    prepared.refusal = refusal_;
    prepared.warmup = options_.warmup;
    prepared.rounds = options_.rounds;
    return prepared;
  }
  Verified verify(const Prepared&) override { return {}; }
  Timed time(const Prepared&) override { return {}; }
  TracedRound trace(const Prepared&) override { return {}; }

 private:
  const Options& options_;
  Refusal refusal_;
};

}  // namespace

Verified CaseRunner::with(Verified so_far, const Comparison& here, double seconds) const {
  return sum(std::move(so_far), {.wrong = team_.sum(here.wrong),
                                 .first_wrong = team_.first(here.first),
                                 .relative_error = team_.max(here.relative_error),
                                 .tolerance = team_.max(here.tolerance),
                                 .elements = team_.sum(here.elements),
                                 .tokens = here.tokens,
                                 .heads = here.heads,
                                 .seconds = team_.max(seconds),
                                 .verified_case = std::nullopt});
}

std::unique_ptr<CaseRunner> unavailable_runner(const Options& options, Refusal refusal, Team team) {
  return std::make_unique<UnavailableRunner>(options, std::move(refusal), std::move(team));
}

std::string trace_round(const std::string& path, const Record& record, const Prepared& prepared,
                        CaseRunner& runner) {
  if (path.empty()) return {};
  if (!record.is_timed()) return "# no trace: nothing was timed\n";
  constexpr double most_steps = 500000;  // of about 3.5 KiB each until they are written
  if (const double steps = extent_of(record.bench_case, record.blocks).steps; steps > most_steps)
    return fmt::format("# no trace: {:.0f} steps would need {:.1f} GiB of memory, at most {:.0f} are drawn\n",
                       steps, steps * 3.5 / (1 << 20), most_steps);
  const auto [schedules, times] = runner.trace(prepared);
  const bool has_steps = std::any_of(schedules.begin(), schedules.end(),
                                     [](const Schedule& schedule) { return !schedule.steps().empty(); });
  const std::string& executor = record.bench_case.executor;
  if (times.empty() && has_steps)
    return fmt::format("# no trace: the executor '{}' does not tell when its steps ran\n", executor);
  const TraceTitle title{record.bench_case.name(), executor, record.blocks, commit()};
  if (runner.team().rank() == 0) write_text(path, chrome_trace(schedules, times, title) + "\n");
  return fmt::format(
      "# trace of one more round: {} (ui.perfetto.dev shows it, ./run figure trace draws it)\n",
      printable(path));
}

}  // namespace baton
