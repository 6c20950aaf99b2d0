// SPDX-License-Identifier: Apache-2.0
#include "harness/run/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <random>

#include "collectives/schedule/errors.hpp"
#include "harness/cases/verify.hpp"

namespace baton {
namespace {

std::string new_run_name() {
  std::random_device random;
  return fmt::format("{}-{:08x}", utc_now(), random());
}

Record record_of(const Case& bench_case, const Prepared& prepared, const Verified& verified,
                 const Timed& timed, const Standing& standing, double start_skew_seconds) {
  const bool is_timed = verified.wrong == 0 && !timed.samples.seconds.empty();
  const auto& prediction = prepared.prediction;
  return {.bench_case = bench_case,
          .implementation = prepared.implementation,
          .blocks = prepared.blocks,
          .ranks_a_node = prepared.bench_case.ranks_a_node,
          .warmup = prepared.warmup,
          .rounds = prepared.rounds,
          .skipped = prepared.refusal.reason(),
          .cost = timed.cost ? timed.cost : prepared.cost,
          .messages = timed.messages,
          .alpha_beta = prepared.alpha_beta,
          .device_facts = prepared.device_facts,
          .start_skew_seconds = start_skew_seconds,
          .verified = verified,
          .wire = prepared.wire,
          .samples = is_timed ? timed.samples : Samples{},
          .summary = is_timed ? summarise(timed.samples.seconds) : Summary{},
          .ratio = standing.ratio,
          .hidden = standing.hidden,
          .topology = prediction ? prediction->topology : prepared.topology,
          .predicted_seconds = prediction ? std::optional(prediction->seconds) : std::nullopt,
          .extrapolated = prediction ? prediction->extrapolated : timed.extrapolated};
}

}  // namespace

Verified CaseRunner::with(Verified so_far, const Comparison& here) const {
  return sum(std::move(so_far), {.wrong = team_.sum(here.wrong),
                                 .first_wrong = team_.first(here.first),
                                 .relative_error = team_.max(here.relative_error),
                                 .tolerance = team_.max(here.tolerance),
                                 .verified_case = std::nullopt});
}

std::string trace_round(const std::string& path, const Record& record, const Prepared& prepared,
                        CaseRunner& runner) {
  if (path.empty()) return {};
  if (!record.is_timed()) return "# no trace: nothing was timed\n";
  constexpr double most_steps = 500000;  // of about 3.5 KiB each until they are written
  if (const double steps = extent_of(prepared.bench_case, record.blocks).steps; steps > most_steps)
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
      "# trace of one more round: {} (ui.perfetto.dev shows it, plots/space_time.py draws it)\n", path);
}

Experiment::Experiment(const Options& options, const std::optional<Topology>& topology, const World& world,
                       const Table& table)
    : options_(options),
      topology_(topology),
      world_(world),
      table_(table),
      provenance_{.machine = this_machine(world.library()),
                  .commit = commit(),
                  .run = new_run_name(),
                  .seed = options.seed,
                  .baseline = options.baseline},
      journal_(world.rank() == 0 ? options.journal : ""),
      watchdog_(world, options.time_limit_seconds, options.journal),
      progress_(world.rank() == 0, static_cast<int>(options.cases.size())),
      groups_(options.baseline) {}

BenchmarkCase::Result Experiment::run(const Case& bench_case) {
  watchdog_.enter(bench_case.name());
  progress_.enter(bench_case.name());
  CaseRunner& runner = this->runner(bench_case);
  BenchmarkCase::Result outcome{std::vector<double>(options_.rounds, 0.0), {}};
  std::string error;
  try {
    if (runner.team().is_member()) outcome = answer(runner, bench_case);
  } catch (const ScheduleError& wrong) {
    error = wrong.what();
  }
  // Processes without a rank in the case wait here, asleep. A wrong schedule ends all processes.
  world_.all().wait_asleep();
  error = world_.all().first(error);
  if (!error.empty()) throw ScheduleError(error);
  return outcome;
}

CaseRunner& Experiment::runner(const Case& bench_case) {
  auto& runner = runners_[{bench_case.executor, bench_case.ranks}];
  if (runner) return *runner;
  runner = make_runner(find_backend(bench_case.executor), bench_case.ranks);
  if (!runner->team().is_member()) return *runner;
  if (first_round_start_.empty()) {
    first_round_start_ = runner->round_start();
    print(head(first_round_start_) + table_.head());
  }
  const std::string description = runner->description(), start = runner->round_start();
  print(description);
  if (start != first_round_start_ && description.find(start) == std::string::npos)
    print(fmt::format("# {}: rounds start by {}\n", bench_case.executor, start));
  return *runner;
}

std::unique_ptr<CaseRunner> Experiment::make_runner(const Backend& backend, int ranks) {
  Team team = world_.team(backend.process_a_rank ? ranks : 1);
  const Refusal refusal = world_.all().first(backend.lacking(ranks).reason());
  if (refusal) return unavailable_runner(options_, refusal, std::move(team));
  if (backend.is_measured) return measured_runner(options_, topology_, backend.name, ranks, std::move(team));
  return simulated_runner(options_, topology_.value(), ranks, std::move(team));
}

BenchmarkCase::Result Experiment::answer(CaseRunner& runner, const Case& bench_case) {
  const Prepared prepared = runner.prepare(bench_case);
  const Verified before = prepared.refusal ? Verified{} : runner.verify(prepared);
  const bool runs = !prepared.refusal && before.wrong == 0;
  const Timed timed = runs ? runner.time(prepared) : Timed{};
  const Verified verified = sum(before, timed.verified);
  const Standing standing =
      runs && verified.wrong == 0 ? groups_.add(bench_case, timed.samples.seconds) : Standing{};
  const Record record =
      record_of(bench_case, prepared, verified, timed, standing, runner.start_skew_seconds());
  keep(record);
  print(trace_round(options_.trace, record, prepared, runner));
  if (prepared.refusal) return {{}, prepared.refusal.reason()};
  if (!runs) return {{}, "wrong result"};
  std::vector<double> seconds = timed.samples.seconds;
  seconds.resize(options_.rounds, seconds.front());  // a simulated round stands for all rounds
  return {std::move(seconds), {}};
}

void Experiment::keep(const Record& record) {
  if (record.verified.wrong > 0 && wrong_.empty())
    wrong_ = fmt::format("{}: {} wrong elements, first {}", record.bench_case.name(), record.verified.wrong,
                         record.verified.first_wrong);
  if (world_.rank() != 0) return;
  prediction_errors_.add(record);
  print(table_.row(record));  // first, so that the row is there even if the journal's disk is full
  journal_.append(json_line(record, provenance_));
  require_output();
}

void Experiment::print(const std::string& text) const {
  if (world_.rank() != 0 || text.empty()) return;
  progress_.clear();
  std::cout << text << std::flush;
}

std::string Experiment::head(const std::string& round_start) const {
  const Machine& machine = provenance_.machine;
  return fmt::format(
      "# baton {} · {} · {} cores · {} · {} · {} · {}\n"
      "# {} warm-up and {} measured rounds; a round is the slowest rank's time; mean is the papers' figure\n"
      "# start of a round: {}; timer {:.0f} ns a reading; seed {}\n"
      "# bound = hops alpha + busiest rank's bytes / beta, and on GPUs what an empty round reads, measured "
      "below; "
      "* blocks chosen by the model; "
      "ratio to {}\n",
      provenance_.commit, machine.cpu, machine.cores, machine.system, machine.mpi, machine.compiler,
      machine.build, options_.warmup, options_.rounds, round_start, timer_overhead_seconds() * 1e9,
      options_.seed, options_.baseline.empty() ? "nothing (--baseline)" : options_.baseline);
}

void Experiment::finish() {
  print(prediction_errors_.table());
  if (world_.rank() == 0) require_output();
  if (!wrong_.empty()) throw WrongResult(wrong_);
}

namespace {

void run_cases(const Options& options, const std::optional<Topology>& topology, const World& world,
               const Table& table) {
  Experiment experiment(options, topology, world, table);
  std::vector<BenchmarkCase> cases;
  for (const Case& bench_case : options.cases)
    cases.push_back({bench_case.name(), [&] { return experiment.run(bench_case); }});
  run_benchmarks(cases, options.rounds, world.rank() == 0);
  experiment.finish();
}

void bench(int argc, char** argv, const ParseOptions& parse, const Table& table) {
  std::optional<Options> options = parse(argc, argv);
  if (!options) return;
  const std::optional<Topology> topology = read_machine(*options);
  if (options->dry_run && launched_rank() == 0) print_dry_run(options->cases, options->print_schedules);
  if (options->dry_run) return;
  refuse_if_nothing_runs(*options);
  if (launched_rank() == 0) {
    // Before the processes start: a run whose output cannot be written need not start.
    require_outputs(*options);
    refuse_too_many_processes(*options);
  }
  initialise_benchmark(options->benchmark_arguments, launched_rank() == 0);
  relaunch(options->processes(), options->threads, argv);

  run_in_world(&argc, &argv, [&](const World& world) {
    world.require(options->processes());
    run_cases(*options, topology, world, table);
  });
}

}  // namespace

int bench_main(int argc, char** argv, const ParseOptions& parse, const Table& table) {
  forget_benchmark_environment(argv);
  keep_streams_open();
  return exit_code_of([&] {
    bench(argc, argv, parse, table);
    require_output();
  });
}

}  // namespace baton
