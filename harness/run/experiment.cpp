// SPDX-License-Identifier: Apache-2.0
#include "harness/run/experiment.hpp"

#include <fmt/format.h>

#include <sstream>

#include "collectives/schedule/errors.hpp"
#include "collectives/simulator/topology/topology.hpp"
#include "harness/cases/case.hpp"
#include "harness/cases/proof.hpp"
#include "harness/options/options.hpp"
#include "harness/process/world.hpp"
#include "harness/record/export.hpp"
#include "harness/run/contests.hpp"
#include "harness/run/display.hpp"
#include "harness/run/measured_runner.hpp"
#include "harness/run/outcomes.hpp"
#include "harness/run/runner.hpp"
#include "harness/run/simulated_runner.hpp"

namespace baton {
namespace {

constexpr char proof_end = '\x1e';  // behind the text of each case

Record record_of(const Case& bench_case, const Prepared& prepared, const Verified& verified,
                 const Timed& timed, const CaseRunner& runner) {
  const bool is_timed = verified.wrong == 0 && !timed.samples.seconds.empty();
  const auto& prediction = prepared.prediction;
  return {.bench_case = bench_case,
          .implementation = prepared.implementation,
          .blocks = prepared.blocks,
          .ranks_per_node = prepared.bench_case.ranks_per_node,
          .warmup = prepared.warmup,
          .rounds = prepared.rounds,
          .skipped = prepared.refusal.reason(),
          .failure = std::nullopt,
          .cost = timed.cost ? timed.cost : prepared.cost,
          .matrices = prepared.matrices,
          .footprint = timed.footprint ? timed.footprint : prepared.footprint,
          .messages = timed.messages,
          .known_bound_seconds = timed.bound_seconds,
          .alpha_beta = timed.alpha_beta.value_or(prepared.alpha_beta),
          .device_facts = prepared.device_facts,
          .start_skew_seconds = runner.start_skew_seconds(),
          .transport = runner.transport(),
          .hosts = runner.hosts(),
          .conditions = timed.conditions,
          .verified = verified,
          .wire = prepared.wire,
          .samples = is_timed ? timed.samples : Samples{},
          .timed_seconds = timed.seconds,
          .summary = is_timed ? summarise(timed.samples.seconds) : Summary{},
          .standing = {},
          .over_launches = {},
          .topology = prediction ? prediction->topology : prepared.topology,
          .stands_on = prepared.stands_on,
          .predicted_seconds = prediction ? std::optional(prediction->seconds) : std::nullopt,
          .extrapolated = prediction ? prediction->extrapolated : timed.extrapolated};
}

}  // namespace

Experiment::Experiment(const Options& options, const std::optional<Topology>& topology, const World& world,
                       Outcomes& outcomes, Standings& standings, Display* display,
                       const std::string& interrupted)
    : options_(options),
      topology_(topology),
      world_(world),
      outcomes_(outcomes),
      standings_(standings),
      display_(display),
      files_(options, world.rank() == 0 ? outcomes.run() : "", outcomes.launch(), world.rank() == 0),
      watchdog_(world, options.time_limit_seconds, interrupted) {
  if (world.rank() == 0) outcomes.meet();
  add_outcomes(standings, outcomes, static_cast<int>(options.cases.size()));
  for (int index = 0; index < static_cast<int>(options.cases.size()); ++index)
    settled_ += outcomes.is_settled(index) ? '1' : '0';
  settled_ = world.all().first(world.rank() == 0 ? settled_ : "");
  if (outcomes.launch() == 1) prove_cases();
}

Experiment::~Experiment() = default;

/// Proves all cases before any of them is timed. Rank 0 does it for all, since it costs processor
/// time, and the others wait asleep.
void Experiment::prove_cases() {
  std::string texts;
  if (world_.rank() == 0)
    for (const std::string& text : prove(options_.cases)) texts += text + proof_end;
  world_.all().wait_asleep();
  std::istringstream all(world_.all().first(texts));
  for (std::string text; std::getline(all, text, proof_end);) proofs_.push_back(text);
}

BenchmarkCase::Result Experiment::run(int index) {
  if (settled_[index] == '0') return run_unsettled(index);
  const Outcome* outcome = outcomes_.outcome(outcomes_.launch(), index);
  if (world_.rank() == 0 && (outcome == nullptr || outcome->state != Outcome::State::timed))
    return {{}, "settled before"};
  std::vector<double> seconds = outcome != nullptr ? outcome->seconds() : std::vector{0.0};
  seconds.resize(options_.rounds, seconds.back());
  return {std::move(seconds), {}};
}

BenchmarkCase::Result Experiment::run_unsettled(int index) {
  const Case& bench_case = options_.cases[index];
  watchdog_.enter(bench_case.name());
  if (world_.rank() == 0) outcomes_.begin(index);
  if (display_ != nullptr) display_->refresh();
  if (!proofs_.empty() && !proofs_[index].empty()) return refuse(index, proofs_[index]);
  CaseRunner& runner = this->runner(bench_case);
  BenchmarkCase::Result outcome{std::vector<double>(options_.rounds, 0.0), {}};
  std::string error;
  try {
    if (runner.team().is_member()) outcome = answer(runner, index);
  } catch (const ScheduleError& wrong) {
    error = wrong.what();
  }
  // Processes without a rank in the case wait here, asleep.
  world_.all().wait_asleep();
  error = world_.all().first(error);
  return error.empty() ? outcome : refuse(index, error);
}

/// Keeps a case whose schedules are wrong as a failed one.
BenchmarkCase::Result Experiment::refuse(int index, const std::string& error) {
  keep(index, failed_record(options_, index,
                            {.reason = error, .rank = {}, .step = {}, .exit_code = ExitCode::schedule}));
  return {{}, error};
}

CaseRunner& Experiment::runner(const Case& bench_case) {
  auto& runner = runners_[{bench_case.executor, bench_case.ranks}];
  if (runner) return *runner;
  runner = make_runner(find_backend(bench_case.executor), bench_case.ranks);
  if (!runner->team().is_member()) return *runner;
  announce(fmt::format("{}, {} ranks", bench_case.executor, bench_case.ranks), runner->description());
  return *runner;
}

std::unique_ptr<CaseRunner> Experiment::make_runner(const Backend& backend, int ranks) {
  Team team = world_.team(backend.process_per_rank ? ranks : 1);
  const Refusal refusal = world_.all().first(backend.lacking(ranks).reason());
  if (refusal) return unavailable_runner(options_, refusal, std::move(team));
  if (backend.is_measured) return measured_runner(options_, topology_, backend.name, ranks, std::move(team));
  return simulated_runner(options_, topology_.value(), ranks, std::move(team));
}

BenchmarkCase::Result Experiment::answer(CaseRunner& runner, int index) {
  const Case& bench_case = options_.cases[index];
  const Prepared prepared = runner.prepare(bench_case);
  const Verified before = prepared.refusal ? Verified{} : runner.verify(prepared);
  const bool runs = !prepared.refusal && before.wrong == 0;
  const Timed timed = runs ? runner.time(prepared) : Timed{};
  const Verified verified = sum(before, timed.verified);
  const Record record = keep(index, record_of(bench_case, prepared, verified, timed, runner));
  if (outcomes_.launch() == options_.launches) {
    std::string files = trace_round(options_.trace, record, prepared, runner);
    if (!prepared.refusal && world_.rank() == 0)
      files += export_case(options_.exported, prepared.bench_case, prepared.blocks);
    announce("trace", files);
  }
  if (prepared.refusal) return {{}, prepared.refusal.reason()};
  if (!record.is_timed()) return {{}, "wrong result"};
  std::vector<double> seconds = timed.samples.seconds;
  seconds.resize(options_.rounds, seconds.front());  // a simulated round stands for all rounds
  return {std::move(seconds), {}};
}

/// Adds the standing of the case among those that have ended, and keeps its record. Returns the
/// record.
Record Experiment::keep(int index, Record record) {
  if (world_.rank() != 0) return record;
  if (record.is_timed()) standings_.add(outcomes_.launch(), index, record.samples.seconds);
  record.standing = standings_.standing(outcomes_.launch(), index);
  record.over_launches = standings_.over_launches(index);
  files_.append(record);
  outcomes_.end(index, record);
  if (display_ != nullptr) display_->refresh();
  require_output();
  return record;
}

/// Hands a text to the process that prints the rows.
void Experiment::announce(const std::string& about, const std::string& text) {
  if (world_.rank() != 0 || text.empty()) return;
  outcomes_.announce({about, text});
  if (display_ != nullptr) display_->refresh();
}

}  // namespace baton
