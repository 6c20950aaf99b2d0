// SPDX-License-Identifier: Apache-2.0
// Parse, launch, register, run, finish.
#include "harness/bench.hpp"

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "harness/cases/dry_run.hpp"
#include "harness/process/files.hpp"
#include "harness/process/guard.hpp"
#include "harness/process/launch.hpp"
#include "harness/report/reporter.hpp"
#include "harness/run/experiment.hpp"
#include "harness/run/traced_round.hpp"

namespace baton {
namespace {

void register_cases(const Options& options, Experiment& experiment) {
  for (const Case& question : options.cases)
    benchmark::RegisterBenchmark(
        question.name().c_str(),
        [&experiment, question](benchmark::State& state) { experiment.run(state, question); })
        ->UseManualTime()
        ->Iterations(options.rounds)
        ->Unit(benchmark::kMicrosecond);
}

/// Google Benchmark reads flags from the environment too, past the ones we refuse.
void forget_benchmark_environment() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string line = *entry;
    if (line.rfind("BENCHMARK_", 0) == 0) names.push_back(line.substr(0, line.find('=')));
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

/// Throws UsageError if the file of --benchmark_out cannot be written: Google Benchmark would just exit.
void try_benchmark_out(const std::vector<std::string>& arguments) {
  constexpr std::string_view flag = "--benchmark_out=";
  for (const std::string& argument : arguments)
    if (argument.rfind(flag, 0) == 0 && !std::ofstream(argument.substr(flag.size()), std::ios::app))
      throw UsageError("cannot write '" + argument.substr(flag.size()) + "'");
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
  forget_benchmark_environment();
  benchmark::Initialize(&count, pointers.data());
  if (count > 1) throw UsageError(fmt::format("Google Benchmark does not know '{}'", pointers[1]));
}

void run_cases(const World& world, Experiment& experiment) {
  TableReporter table(experiment);
  SilentReporter silence;
  benchmark::BenchmarkReporter* reporter = &silence;
  if (world.rank() == 0) reporter = &table;
  const std::size_t matched = benchmark::RunSpecifiedBenchmarks(reporter);
  benchmark::Shutdown();
  if (matched == 0) throw UsageError("--benchmark_filter matches no case; --benchmark_list_tests shows them");
  if (!std::cout.flush()) throw SystemError("cannot write to the standard output");
}

/// Throws UsageError where this machine can run nothing of what is asked; where it can run some, the other rows say why
/// they do not run.
void refuse_if_nothing_runs(const Options& options) {
  std::string reason;
  for (const Case& question : options.cases) {
    const Refusal lack = find_executor(question.executor).lacking(question.ranks);
    if (!lack) return;
    if (reason.empty()) reason = "executor " + question.executor + " cannot run: " + lack.reason();
  }
  throw UsageError(reason);
}

void bench(int argc, char** argv, const ParseOptions& parse, const Table& table) {
  std::optional<Options> options = parse(argc, argv);
  if (!options) return;
  if (options->dry_run) return print_dry_run(*options);
  refuse_if_nothing_runs(*options);
  if (launched_rank() == 0) {
    // Before anything starts: what cannot be kept need not be measured.
    try_benchmark_out(options->benchmark_arguments);
    Journal(options->journal);
    try_trace(*options);
    if (!options->calibrate.empty() && options->calibrated_ranks() > 0)
      require_writable(options->calibrate, "a topology");
    require_different_files({options->journal, options->trace, options->calibrate});
  }
  initialise_benchmark(options->benchmark_arguments, launched_rank() == 0);
  relaunch(options->processes(), options->threads, argv);

  run_in_world(&argc, &argv, [&](const World& world) {
    world.require(options->processes());
    Experiment experiment(*options, world, table);
    register_cases(*options, experiment);
    run_cases(world, experiment);
    experiment.throw_if_wrong();
  });
}

}  // namespace

int bench_main(int argc, char** argv, const ParseOptions& parse, const Table& table) {
  return guarded([&] { bench(argc, argv, parse, table); });
}

}  // namespace baton
