// SPDX-License-Identifier: Apache-2.0
// From the command line to the launches, and the part of each process in its launch.
#include "harness/run/bench.hpp"

#include <fmt/format.h>

#include "collectives/schedule/errors.hpp"
#include "harness/cases/proof.hpp"
#include "harness/machine/system.hpp"
#include "harness/options/checks.hpp"
#include "harness/options/options.hpp"
#include "harness/process/exit_codes.hpp"
#include "harness/process/output.hpp"
#include "harness/process/program_launcher.hpp"
#include "harness/process/report.hpp"
#include "harness/process/world.hpp"
#include "harness/record/export.hpp"
#include "harness/run/collector.hpp"
#include "harness/run/google_benchmark.hpp"
#include "harness/run/launches.hpp"
#include "harness/run/worker.hpp"

namespace baton {
namespace {

/// What a user whose own launcher started this launch can do after it.
std::string resume_hint(const Options& options) {
  if (options.journal.empty()) return "the rows above stand; with -J FILE their records would be kept";
  return fmt::format(
      "the rows above stand, and their records in {}; the same command with --resume {} goes on",
      options.journal, options.journal);
}

/// The part of a rank that a bench started.
void work(const Options& options, const std::optional<Topology>& topology, const World& world) {
  Channel channel(options.worker);
  Worker worker(
      options, topology, world, [&](const Message& message) { channel.send(message); }, "");
  worker.run(channel.read_plan());
}

/// Starts the first launch that lacks a case, and returns its plan.
Plan first_plan(Collector& collector, const Options& options) {
  int launch = 1;
  while (launch < options.launches &&
         collector.results().is_complete(launch, static_cast<int>(options.cases.size())))
    ++launch;
  return collector.start_launch(launch, options.launches);
}

/// Runs one launch that the user's own launcher started. Rank 0 is a worker too, and collects what
/// all of them give. Returns the exit code.
int run_one_launch(const Options& options, const std::optional<Topology>& topology, const World& world) {
  std::optional<Collector> collector;
  std::string line;
  if (world.rank() == 0) line = first_plan(collector.emplace(options, options.launches), options).line();
  world.all().wait_asleep();  // rank 0 proves the schedules
  const Plan plan = Plan::of_line(world.all().first(line));
  const auto take = [&](const Message& message) {
    collector->take(message);
    collector->display().refresh();
  };
  Worker worker(options, topology, world, take, resume_hint(options));
  worker.run(plan);
  if (!collector) return 0;
  collector->display().finish();
  require_output();
  write_benchmark_file(options, collector->results());
  const int code = collector->results().summary(options.cases);
  const int launch = collector->results().launch();
  if (code == 0 && launch < options.launches)
    fmt::print(stderr, "baton: launch {} of {} is done; {}\n", launch, options.launches,
               resume_hint(options));
  return code;
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
  const int processes = options->processes();
  if (options->dry_run || !select_cases(*options)) return 0;
  refuse_if_nothing_runs(*options);
  const bool is_worker = !options->worker.empty();
  if (is_worker) report_into(Channel(options->worker).messages_path());
  if (!is_worker && launched_rank() == 0) {
    // Before the processes start: a run whose output cannot be written need not start.
    require_outputs(*options);
    refuse_too_many_processes(*options);
  }
  if (!is_worker && !is_launched()) return run_launches(*options, argv);
  int code = 0;
  run_in_world(&argc, &argv, [&](const World& world) {
    if (!is_worker || program_launcher().empty()) world.require(processes);  // else some launches have fewer
    if (is_worker)
      work(*options, topology, world);
    else
      code = run_one_launch(*options, topology, world);
  });
  return code;
}

}  // namespace

int bench_main(int argc, char** argv, ParseOptions parse) {
  keep_streams_open();
  return exit_code_of([&] {
    const int code = bench(argc, argv, parse);
    require_output();
    return code;
  });
}

}  // namespace baton
