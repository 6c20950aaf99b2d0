// SPDX-License-Identifier: Apache-2.0
#include "harness/runners/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "harness/cases/verify.hpp"
#include "harness/machine/system.hpp"
#include "harness/options/options.hpp"
#include "harness/process/output.hpp"
#include "harness/record/trace.hpp"

namespace baton {
namespace {

class UnavailableRunner : public CaseRunner {
 public:
  UnavailableRunner(const Options& options, Refusal refusal, Team team)
      : CaseRunner(std::move(team)), options_(options), refusal_(std::move(refusal)) {}

  Prepared prepare(const Case& bench_case) override {
    Prepared prepared{.bench_case = bench_case, .refusal = refusal_};
    add_case(prepared.result, bench_case, options_.warmup, options_.rounds);
    return prepared;
  }

 private:
  void verify(Prepared&) override {}
  void time(Prepared&) override {}

  const Options& options_;
  Refusal refusal_;
};

}  // namespace

void CaseRunner::add(Prepared& prepared, const Comparison& here, double seconds) const {
  prepared.found = sum(std::move(prepared.found), {.wrong = team_.sum(here.wrong),
                                                   .first = team_.first(here.first),
                                                   .relative_error = team_.max(here.relative_error),
                                                   .tolerance = team_.max(here.tolerance),
                                                   .elements = team_.sum(here.elements),
                                                   .tokens = here.tokens,
                                                   .heads = here.heads});
  prepared.verification_seconds += team_.max(seconds);
}

void CaseRunner::measure(Prepared& prepared) {
  if (prepared.refusal) return prepared.result.set("skipped", prepared.refusal.reason());
  verify(prepared);
  if (prepared.found.wrong == 0) time(prepared);
  add_traffic(prepared.result, prepared.bench_case, prepared.traffic);
  add_verification(prepared.result, prepared.found, prepared.verification_seconds);
  if (prepared.verified_case) add_verified_case(prepared.result, *prepared.verified_case);
}

std::unique_ptr<CaseRunner> unavailable_runner(const Options& options, Refusal refusal, Team team) {
  return std::make_unique<UnavailableRunner>(options, std::move(refusal), std::move(team));
}

std::string trace_round(const std::string& path, const Prepared& prepared, CaseRunner& runner) {
  if (path.empty()) return {};
  const auto& [bench_case, blocks] = std::tie(prepared.bench_case, prepared.blocks);
  if (!prepared.result.is_timed()) return "# no trace: nothing was timed\n";
  constexpr double most_steps = 500000;  // of about 3.5 KiB each until they are written
  if (const double steps = extent_of(bench_case, blocks).steps; steps > most_steps)
    return fmt::format("# no trace: {:.0f} steps would need {:.1f} GiB of memory, at most {:.0f} are drawn\n",
                       steps, steps * 3.5 / (1 << 20), most_steps);
  const auto [schedules, times] = runner.trace(prepared);
  const bool has_steps = std::any_of(schedules.begin(), schedules.end(),
                                     [](const Schedule& schedule) { return !schedule.steps().empty(); });
  const std::string& executor = bench_case.backend->name;
  if (times.empty() && has_steps)
    return fmt::format("# no trace: the executor '{}' does not tell when its steps ran\n", executor);
  const TraceTitle title{bench_case.name(), executor, blocks, commit()};
  if (runner.team().rank() == 0) write_text(path, chrome_trace(schedules, times, title) + "\n");
  return fmt::format(
      "# trace of one more round: {} (ui.perfetto.dev shows it, ./run figure trace draws it)\n",
      printable(path));
}

}  // namespace baton
