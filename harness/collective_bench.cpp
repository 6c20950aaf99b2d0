// SPDX-License-Identifier: Apache-2.0
// collective_bench: times the exchanges of sequence-parallel attention.
//
//   parse the command line, launch the processes, register the cases, run them, finish
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <optional>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "harness/dry_run.hpp"
#include "harness/experiment.hpp"
#include "harness/guard.hpp"
#include "harness/launch.hpp"
#include "harness/options.hpp"
#include "harness/table.hpp"

namespace {

using namespace baton;

void register_cases(const std::vector<Case>& all, const Options& options, Experiment& experiment) {
  for (const Case& question : all)
    benchmark::RegisterBenchmark(
        question.name().c_str(),
        [&experiment, question](benchmark::State& state) { experiment.run(state, question); })
        ->UseManualTime()
        ->Iterations(options.rounds)
        ->Unit(benchmark::kMicrosecond);
}

/// Hands Google Benchmark its own arguments, which it keeps pointers to; only rank 0 may write its files.
void initialise_benchmark(std::vector<std::string>& arguments, bool writes_files) {
  if (!writes_files)
    std::erase_if(arguments,
                  [](const std::string& argument) { return argument.rfind("--benchmark_out", 0) == 0; });
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, pointers.data());
  if (count > 1) throw UsageError(fmt::format("Google Benchmark does not know '{}'", pointers[1]));
}

void run_cases(const World& world, Experiment& experiment) {
  TableReporter table(experiment);
  SilentReporter silence;
  benchmark::BenchmarkReporter* reporter = &silence;
  if (world.rank() == 0) reporter = &table;
  benchmark::RunSpecifiedBenchmarks(reporter);
  benchmark::Shutdown();
}

void bench(int argc, char** argv) {
  std::optional<Options> options = parse_options(argc, argv);
  if (!options) return;
  const std::vector<Case> all = cases(options->axes);
  if (options->dry_run) return print_dry_run(all, *options);
  initialise_benchmark(options->benchmark_arguments, launched_rank() == 0);
  Journal(options->journal);  // before anything starts: what cannot be kept need not be measured
  relaunch(options->processes(), argv);

  run_in_world(&argc, &argv, [&](const World& world) {
    world.require(options->processes());
    Experiment experiment(*options, world, static_cast<int>(all.size()));
    register_cases(all, *options, experiment);
    run_cases(world, experiment);
    experiment.throw_if_wrong();
  });
}

}  // namespace

int main(int argc, char** argv) {
  return guarded([&] { bench(argc, argv); });
}
