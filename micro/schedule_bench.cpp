// SPDX-License-Identifier: Apache-2.0
// What the engine itself costs: building and checking the schedules of all ranks, on one core.
#include <benchmark/benchmark.h>

#include "collectives/collective.hpp"
#include "collectives/schedule/check.hpp"

namespace {

using namespace baton;

void build_and_check(benchmark::State& state, const char* name) {
  const int ranks = static_cast<int>(state.range(0));
  const Collective& collective = find_collective(name);
  for (auto _ : state) {
    const auto schedules = build_all(collective, Shape{}, {.ranks = ranks, .blocks = 16});
    benchmark::DoNotOptimize(check(name, schedules).hops);
  }
}

BENCHMARK_CAPTURE(build_and_check, all_scan, "all_scan")->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(build_and_check, two_shot, "two_shot")->Arg(256)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
