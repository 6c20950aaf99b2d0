// SPDX-License-Identifier: Apache-2.0
// Records for tests.
#pragma once

#include <nlohmann/json.hpp>
#include <utility>

#include "harness/cases/collective_workload.hpp"
#include "harness/layers/workload.hpp"
#include "harness/record/json.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton {

using Json = nlohmann::ordered_json;

inline Json to_json(const Record& record, const Provenance& provenance = {}) {
  return json_of(record, provenance);
}

inline Record timed_record() {
  Record record;
  record.bench_case = {
      .workload = collective_workload(find_collective("all_scan"), Shape{}, Direction::forward),
      .executor = "local",
      .ranks = 4,
      .blocks = auto_blocks};
  record.blocks = 8;
  record.rounds = 3;
  record.cost = Cost{2 << 20, 3};
  record.alpha_beta = {.alpha_seconds = 1e-6, .beta = 1e9};
  record.samples = {.first_seconds = 9, .seconds = {1, 2, 3}, .rank_seconds = {{1, 2, 3}}};
  record.summary = summarise(record.samples.seconds);
  return record;
}

inline Layer small_layer() {
  Layer layer;
  layer.share = {20, 2, 4, 6, 8, GateKind::vector};
  return layer;
}

}  // namespace baton
