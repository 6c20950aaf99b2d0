// SPDX-License-Identifier: Apache-2.0
#include "harness/run/google_benchmark.hpp"

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>

#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

/// Prints no row, since cases print their own; and no list of tests unless `lists`.
class QuietReporter : public benchmark::BenchmarkReporter {
 public:
  explicit QuietReporter(bool lists) {
    if (lists) return;
    SetOutputStream(&nowhere_);
    SetErrorStream(&nowhere_);
  }

  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}

 private:
  std::ostream nowhere_{nullptr};
};

/// Runs a case and replays its times.
void replay(benchmark::State& state, const BenchmarkCase& bench_case) {
  const BenchmarkCase::Result result = bench_case.run();
  if (!result.skipped.empty()) return state.SkipWithError(result.skipped.c_str());
  std::size_t round = 0;
  for (auto _ : state) state.SetIterationTime(result.seconds.at(round++));
}

}  // namespace

void forget_benchmark_environment(char** argv) {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string line = *entry;
    if (line.rfind("BENCHMARK_", 0) == 0) names.push_back(line.substr(0, line.find('=')));
  }
  for (const std::string& name : names) unsetenv(name.c_str());
  // The library read them before main began.
  if (!names.empty()) execv("/proc/self/exe", argv);
}

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

void run_benchmarks(const std::vector<BenchmarkCase>& cases, int rounds, bool prints) {
  for (const BenchmarkCase& bench_case : cases)
    benchmark::RegisterBenchmark(bench_case.name.c_str(),
                                 [&bench_case](benchmark::State& state) { replay(state, bench_case); })
        ->UseManualTime()
        ->Iterations(rounds)
        ->Unit(benchmark::kMicrosecond);
  QuietReporter reporter(prints);
  const std::size_t matched = benchmark::RunSpecifiedBenchmarks(&reporter);
  benchmark::Shutdown();
  if (matched == 0) throw UsageError("--benchmark_filter matches no case; --benchmark_list_tests shows them");
}

}  // namespace baton
