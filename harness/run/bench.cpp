// SPDX-License-Identifier: Apache-2.0
// From the command line to the launches, and the part of each process in its launch.
#include "harness/run/bench.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/schedule/errors.hpp"
#include "harness/cases/proof.hpp"
#include "harness/options/checks.hpp"
#include "harness/options/options.hpp"
#include "harness/process/exit_codes.hpp"
#include "harness/process/output.hpp"
#include "harness/process/system.hpp"
#include "harness/process/world.hpp"
#include "harness/record/csv.hpp"
#include "harness/record/export.hpp"
#include "harness/record/standings.hpp"
#include "harness/run/display.hpp"
#include "harness/run/experiment.hpp"
#include "harness/run/google_benchmark.hpp"
#include "harness/run/launches.hpp"
#include "harness/run/outcomes.hpp"

namespace baton {
namespace {

/// The outcomes of this process's launch. Rank 0 has the outcomes of earlier launches, the others
/// know the number of the launch. Under the user's own launcher this is the first launch that lacks
/// a case.
Outcomes outcomes_of(const Options& options, const World& world) {
  Outcomes outcomes(world.rank() == 0 ? options.outcomes : "");
  if (options.outcomes.empty() && world.rank() == 0) {
    if (!options.resume.empty())
      outcomes.resume(options.resume, options.cases, options.launches, this_origin(options));
    int launch = 1;
    while (launch < options.launches && outcomes.is_complete(launch, static_cast<int>(options.cases.size())))
      ++launch;
    outcomes.start_launch(launch);
  }
  const int launch = static_cast<int>(world.all().max(outcomes.launch()));
  if (world.rank() > 0) outcomes.start_launch(launch);
  return outcomes;
}

/// Says how a user whose own launcher started this launch goes on after it; empty if the
/// process that starts the launches does.
std::string way_on(const Options& options) {
  if (!options.outcomes.empty()) return {};
  if (options.journal.empty()) return "the rows above stand; with -J FILE their records would be kept";
  return fmt::format(
      "the rows above stand, and their records in {}; the same command with --resume {} goes on",
      options.journal, options.journal);
}

/// Runs the cases, every other launch in reverse order. Returns the exit code.
int run_cases(const Options& options, const std::optional<Topology>& topology, const World& world) {
  Outcomes outcomes = outcomes_of(options, world);
  Standings standings(options.cases, options.baseline);
  std::optional<Display> display;  // where the process prints itself
  if (world.rank() == 0 && options.outcomes.empty())
    display.emplace(options, outcomes, standings, outcomes.launch());
  Experiment experiment(options, topology, world, outcomes, standings, display ? &*display : nullptr,
                        way_on(options));
  std::vector<BenchmarkCase> cases;
  for (int index = 0; index < static_cast<int>(options.cases.size()); ++index)
    cases.push_back({options.cases[index].name(), [&experiment, index] { return experiment.run(index); }});
  if (outcomes.is_reversed()) std::reverse(cases.begin(), cases.end());
  run_benchmarks(cases, options.rounds, world.rank() == 0);
  if (display) display->finish();
  if (world.rank() == 0) require_output();
  if (options.outcomes.empty() && world.rank() == 0) outcomes.require_good(options.cases);
  if (options.outcomes.empty() && world.rank() == 0 && outcomes.launch() < options.launches)
    fmt::print(stderr, "baton: launch {} of {} is done; {}\n", outcomes.launch(), options.launches,
               way_on(options));
  return options.outcomes.empty() && world.rank() == 0 ? outcomes.end_without_failures() : 0;
}

void dry_run(const Options& options) {
  require_exports(options);
  print_dry_run(options.cases, options.print_schedules);
  if (options.exported.format.empty()) return;
  const Case& first = options.cases.front();
  fmt::print("{}", export_case(options.exported, first, dry_blocks(first)));
}

int bench(int argc, char** argv, ParseOptions parse) {
  std::optional<Options> options = parse(argc, argv);
  if (!options) return 0;
  const std::optional<Topology> topology = read_machine(*options);
  if (options->dry_run && launched_rank() == 0) dry_run(*options);
  if (options->dry_run) return 0;
  refuse_if_nothing_runs(*options);
  if (launched_rank() == 0) {
    // Before the processes start: a run whose output cannot be written need not start.
    require_outputs(*options);
    CsvFile(options->csv);
    refuse_too_many_processes(*options);
  }
  if (!is_launched() && options->outcomes.empty()) return run_launches(*options, argv);

  initialise_benchmark(options->benchmark_arguments, launched_rank() == 0);
  int code = 0;
  run_in_world(&argc, &argv, [&](const World& world) {
    world.require(options->processes());
    code = run_cases(*options, topology, world);
  });
  return code;
}

}  // namespace

int bench_main(int argc, char** argv, ParseOptions parse) {
  forget_benchmark_environment(argv);
  keep_streams_open();
  return exit_code_of([&] {
    const int code = bench(argc, argv, parse);
    require_output();
    return code;
  });
}

}  // namespace baton
