// SPDX-License-Identifier: Apache-2.0
// Costs of the engine itself: building, checking and simulating the schedules of all ranks, on
// one core.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "collectives/collective.hpp"
#include "collectives/schedule/check.hpp"
#include "collectives/simulator/simulate.hpp"
#include "sp_methods/sp_method.hpp"

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

/// The peak memory of this process so far, in GB.
double most_gigabytes() {
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024e-9;
}

/// Simulates `source`, the building of its schedules included, and reports steps, time and memory.
void simulate_all(benchmark::State& state, const ScheduleSource& source, const char* topology_file) {
  const Topology topology = read_topology(std::string(TOPOLOGIES) + "/" + topology_file);
  Simulation simulation;
  for (auto _ : state) simulation = simulate(source, topology);
  state.counters["virtual_ms"] = simulation.seconds * 1e3;
  state.counters["steps"] = static_cast<double>(simulation.steps);
  state.counters["steps/s"] = benchmark::Counter(static_cast<double>(simulation.steps),
                                                 benchmark::Counter::kIsIterationInvariantRate);
  state.counters["peak_GB"] = most_gigabytes();
}

/// Simulates a layer of the paper's operator table, with 16K tokens a device.
void simulate_method(benchmark::State& state, const char* name) {
  const int ranks = static_cast<int>(state.range(0)), blocks = static_cast<int>(state.range(1));
  const SpMethod& method = find_method(name);
  const Layer layer{.share = {.tokens = 16384, .heads = 16, .d_k = 128, .d_v = 128, .chunk = 64},
                    .blocks = blocks};
  const ScheduleSource source{name, ranks, [&](int rank) { return build(method, layer, rank, ranks, 8); }};
  simulate_all(state, source, "dgx-h100-32x8.json");
}

void simulate_collective(benchmark::State& state, const char* name) {
  const int ranks = static_cast<int>(state.range(0)), blocks = static_cast<int>(state.range(1));
  const Collective& collective = find_collective(name);
  const Split split{.ranks = ranks, .blocks = blocks, .ranks_per_node = 8};
  const ScheduleSource source{name, ranks, [&](int rank) { return build(collective, Shape{}, rank, split); }};
  simulate_all(state, source, "dgx-h100-2048x8.json");
}

BENCHMARK_CAPTURE(simulate_method, zeco, "zeco")->Args({256, 16})->Unit(benchmark::kMillisecond);
// Into as many blocks as the alpha-beta model says, and as the simulator's finer one.
BENCHMARK_CAPTURE(simulate_collective, all_scan, "all_scan")
    ->Args({256, 16})
    ->Args({16384, 292})
    ->Args({16384, 1000})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate_collective, hierarchical_scan, "hierarchical_scan")
    ->Args({16384, 1})
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
