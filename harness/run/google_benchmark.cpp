// SPDX-License-Identifier: Apache-2.0
#include "harness/run/google_benchmark.hpp"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <set>
#include <sstream>

#include "collectives/schedule/errors.hpp"
#include "harness/machine/system.hpp"
#include "harness/options/options.hpp"
#include "harness/process/world.hpp"
#include "harness/run/results.hpp"

namespace baton {
namespace {

/// Prints no row, since cases print their own, and takes the names that the library lists.
class QuietReporter : public benchmark::BenchmarkReporter {
 public:
  QuietReporter() {
    SetOutputStream(&names);
    SetErrorStream(&errors);
  }
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}

  std::stringstream names, errors;
};

/// Gives the library the user's flags and then `more`. The library's own defaults stand before
/// them, since variables of the environment would set others.
void initialise(const Options& options, std::vector<std::string> more) {
  std::vector<std::string> flags{std::filesystem::read_symlink("/proc/self/exe"),
                                 "--benchmark_list_tests=false",
                                 "--benchmark_filter=",
                                 "--benchmark_out=",
                                 "--benchmark_out_format=json",
                                 "--benchmark_format=console",
                                 "--benchmark_repetitions=1"};
  flags.insert(flags.end(), options.benchmark_arguments.begin(), options.benchmark_arguments.end());
  flags.insert(flags.end(), more.begin(), more.end());
  static std::vector<std::vector<std::string>> kept;  // the library points to them
  kept.push_back(std::move(flags));
  std::vector<char*> pointers;
  for (std::string& flag : kept.back()) pointers.push_back(flag.data());
  int count = static_cast<int>(pointers.size());
  pointers.push_back(nullptr);
  benchmark::Initialize(&count, pointers.data());
  if (count > 1) throw UsageError("Google Benchmark does not know " + quoted(pointers[1]));
}

/// Hands the seconds of each round of a result over.
void replay(benchmark::State& state, const Result* result, int rounds) {
  if (result == nullptr || !result->is_timed())
    return state.SkipWithError(result == nullptr ? "not measured" : result->reason().c_str());
  std::vector<double> seconds = result->value<std::vector<double>>("seconds");
  seconds.resize(rounds, seconds.front());  // a simulated round stands for all rounds
  std::size_t round = 0;
  for (auto _ : state) state.SetIterationTime(seconds.at(round++));
}

/// Registers a benchmark for each case, which replays what `result` returns.
void register_cases(const Options& options, const std::function<const Result*(int)>& result) {
  benchmark::ClearRegisteredBenchmarks();
  for (int index = 0; index < static_cast<int>(options.cases.size()); ++index)
    benchmark::RegisterBenchmark(
        options.cases[index].name().c_str(),
        [=, rounds = options.rounds](benchmark::State& state) { replay(state, result(index), rounds); })
        ->UseManualTime()
        ->Iterations(options.rounds)
        ->Unit(benchmark::kMicrosecond);
}

bool has_flag(const Options& options, const std::string& name) {
  return std::any_of(options.benchmark_arguments.begin(), options.benchmark_arguments.end(),
                     [&](const std::string& one) { return one.starts_with(name); });
}

/// Refuses values for which the library ends the process.
void refuse_odd_values(const Options& options) {
  constexpr std::size_t longest = 1000;  // its regular expressions recurse
  const std::string format = "--benchmark_out_format=";
  for (const std::string& one : options.benchmark_arguments) {
    if (one.size() > longest) throw UsageError(quoted(one) + " is too long");
    const std::string value = one.starts_with(format) ? one.substr(format.size()) : "json";
    if (value != "json" && value != "csv" && value != "console")
      throw UsageError(format + " " + quoted(value) + " is not one of json, csv, console");
  }
}

}  // namespace

bool select_cases(Options& options) {
  if (options.benchmark_arguments.empty()) return true;
  refuse_odd_values(options);
  const bool lists = has_flag(options, "--benchmark_list_tests") &&
                     !has_flag(options, "--benchmark_list_tests=f") &&
                     !has_flag(options, "--benchmark_list_tests=0");
  initialise(options, {"--benchmark_list_tests=true", "--benchmark_out="});
  register_cases(options, {});
  QuietReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  if (lists && launched_rank() == 0) std::cout << reporter.names.str();
  if (lists) return false;
  std::set<std::string> names;
  for (std::string name; std::getline(reporter.names, name);) names.insert(name);
  const std::string end = fmt::format("/iterations:{}/manual_time", options.rounds);
  std::erase_if(options.cases, [&](const Case& one) { return !names.contains(one.name() + end); });
  if (options.cases.empty())
    throw UsageError("--benchmark_filter matches no case; --benchmark_list_tests shows them");
  return true;
}

void write_benchmark_file(const Options& options, const Results& results) {
  if (!has_flag(options, "--benchmark_out=")) return;
  initialise(options, {});
  register_cases(options, [&](int index) { return results.result(results.last_launch(index), index); });
  QuietReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  benchmark::Shutdown();
}

}  // namespace baton
