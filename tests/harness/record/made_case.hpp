// SPDX-License-Identifier: Apache-2.0
// What is found of a case, made up for tests.
#pragma once

#include <utility>
#include <vector>

#include "harness/cases/collective_workload.hpp"
#include "harness/layers/workload.hpp"
#include "harness/record/facts.hpp"
#include "harness/record/row.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton {

/// A case of All-Scan on four ranks whose bound is 3 us and 2 MiB at 1 GB/s.
struct MadeCase {
  Case bench_case{.workload = collective_workload(find_collective("all_scan"), Shape{}, Direction::forward),
                  .backend = &find_backend("local"),
                  .ranks = 4,
                  .blocks = auto_blocks};
  CaseTraffic traffic{.cost = Cost{2 << 20, 3}, .link = {.alpha_seconds = 1e-6, .beta = 1e9}};
  Comparison found;
  Samples samples{.first_seconds = 9, .seconds = {1, 2, 3}, .rank_seconds = {{1, 2, 3}}};
  int warmup = 0;
  int rounds = 3;

  /// The result; without times if there are no seconds.
  Result result() const {
    Result made;
    add_case(made, bench_case, warmup, rounds);
    add_traffic(made, bench_case, traffic);
    add_verification(made, found, 0.5);
    if (!samples.seconds.empty()) add_times(made, bench_case, samples);
    return made;
  }
  Result::Json json() const { return result().json(); }
  Row row() const { return {.bench_case = bench_case, .result = result()}; }
};

/// The same with rounds of these seconds.
inline MadeCase made_case(std::vector<double> seconds) {
  MadeCase made;
  made.samples = {.seconds = std::move(seconds)};
  return made;
}

inline Layer small_layer() {
  Layer layer;
  layer.share = {20, 2, 4, 6, 8, GateKind::vector};
  return layer;
}

}  // namespace baton
