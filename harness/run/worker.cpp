// SPDX-License-Identifier: Apache-2.0
#include "harness/run/worker.hpp"

#include <fmt/format.h>

#include "collectives/schedule/errors.hpp"
#include "collectives/simulator/topology/topology.hpp"
#include "harness/machine/system.hpp"
#include "harness/options/options.hpp"
#include "harness/process/world.hpp"
#include "harness/record/export.hpp"
#include "harness/runners/measured.hpp"
#include "harness/runners/runner.hpp"
#include "harness/runners/simulated.hpp"

namespace baton {
Worker::Worker(const Options& options, const std::optional<Topology>& topology, const World& world,
               TakeMessage send, const std::string& resume_hint)
    : options_(options),
      topology_(topology),
      world_(world),
      send_(std::move(send)),
      machine_(this_machine(mpi_library())),
      watchdog_(world, options.time_limit_seconds, resume_hint) {
  this->send(RanksMet{});
}

Worker::~Worker() = default;

void Worker::run(const Plan& plan) {
  for (const int index : plan.cases) run_case(index, plan.is_last);
}

void Worker::run_case(int index, bool is_last) {
  const Case& bench_case = options_.cases[index];
  watchdog_.enter(bench_case.name());
  send(CaseBegins{index});
  CaseRunner& runner = this->runner(bench_case);
  const bool takes_part = runner.team().is_member();
  Prepared prepared;
  std::string error;
  try {
    if (takes_part) prepared = runner.prepare(bench_case);
    if (takes_part) runner.measure(prepared);
  } catch (const ScheduleError& wrong) {
    error = wrong.what();
  }
  // Processes without a rank in the case wait here, asleep.
  world_.all().wait_asleep();
  error = world_.all().first(error);
  if (!error.empty()) prepared.result = failed_result(bench_case, error);
  add_machine(prepared.result, machine_for(bench_case));
  send(CaseEnds{index, prepared.result});
  if (error.empty() && takes_part && is_last) write_files(runner, prepared);
}

/// The result of a case whose schedules are wrong.
Result Worker::failed_result(const Case& bench_case, const std::string& error) const {
  Result result;
  add_case(result, bench_case, options_.warmup, options_.rounds);
  add_failure(result, {.reason = error, .exit_code = ExitCode::schedule});
  return result;
}

/// The machine, with what the library that carries the messages says is in force.
Machine Worker::machine_for(const Case& bench_case) const {
  Machine machine = machine_;
  for (auto& setting : settings_of_messages(bench_case.backend->name))
    machine.settings.push_back(std::move(setting));
  return machine;
}

/// Writes the files of --trace and --export.
void Worker::write_files(CaseRunner& runner, const Prepared& prepared) {
  std::string lines = trace_round(options_.trace, prepared, runner);
  if (!prepared.refusal && world_.rank() == 0)
    lines += export_case(options_.exported, prepared.bench_case, prepared.blocks);
  if (!lines.empty()) send(Notice{"trace", lines});
}

CaseRunner& Worker::runner(const Case& bench_case) {
  auto& runner = runners_[{bench_case.backend, bench_case.ranks}];
  if (runner) return *runner;
  runner = make_runner(*bench_case.backend, bench_case.ranks);
  if (!runner->team().is_member()) return *runner;
  const std::string lines = runner->description();
  if (!lines.empty())
    send(Notice{fmt::format("{}, {} ranks", bench_case.backend->name, bench_case.ranks), lines});
  return *runner;
}

std::unique_ptr<CaseRunner> Worker::make_runner(const Backend& backend, int ranks) {
  Team team = world_.team(backend.process_per_rank ? ranks : 1);
  const Refusal refusal = world_.all().first(backend.lacking(ranks).reason());
  if (refusal) return unavailable_runner(options_, refusal, std::move(team));
  if (backend.is_measured) return measured_runner(options_, topology_, backend.name, ranks, std::move(team));
  return simulated_runner(options_, topology_.value(), ranks, std::move(team));
}

/// Sends a message of rank 0.
void Worker::send(const Message& message) {
  if (world_.rank() != 0) return;
  send_(message);
  require_output();
}

}  // namespace baton
