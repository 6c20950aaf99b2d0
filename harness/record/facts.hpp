// SPDX-License-Identifier: Apache-2.0
// What is found of a case, under the keys of its result.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/schedule/check.hpp"
#include "harness/cases/case.hpp"
#include "harness/cases/matrices.hpp"
#include "harness/cases/verify.hpp"
#include "harness/machine/conditions.hpp"
#include "harness/machine/system.hpp"
#include "harness/measure/alpha_beta.hpp"
#include "harness/measure/hosts.hpp"
#include "harness/measure/samples.hpp"
#include "harness/measure/statistics.hpp"
#include "harness/record/result.hpp"

namespace baton {

/// The messages of a case, the memory that they need, and the links that carry them.
struct CaseTraffic {
  /// Bytes and hops of the schedules; empty if a native does not tell, or before simulated rounds
  /// count them.
  std::optional<Cost> cost;
  /// Cost of the matrices of affine maps, if there are any; `sent_bytes` are those on the wire.
  std::optional<MatrixCost> matrices;
  /// Memory of the schedules' buffers on the rank that has most; empty if a native does the work.
  std::optional<Footprint> footprint;
  /// The operations of the rank that does most over the mean; empty if no step tells any.
  std::optional<double> balance;
  /// Messages of all ranks together; known for simulated rounds only.
  std::optional<std::int64_t> messages;
  /// The dtype of f32 elements within messages.
  Dtype wire = Dtype::f32;
  AlphaBeta link;
  /// The bound in seconds if it does not follow from `link` alone: with simulated links, or with
  /// links within and between hosts.
  std::optional<double> known_bound_seconds;

  /// Floating-point operations of products of affine maps on the rank that has most.
  double product_flops() const { return matrices ? matrices->product_flops : 0; }
};

/// The least time that the links allow; empty where nothing tells it.
std::optional<double> bound_seconds(const Case& bench_case, const CaseTraffic& traffic);

/// The failure of a case that its processes did not survive, or whose schedule is wrong.
struct Failure {
  std::string reason;
  std::optional<int> rank = {}, step = {};
  int exit_code = 0;
  double seconds = 0;
};

/// Sets what a case is: its axes, its names, and the rounds that it is to be measured in.
void add_case(Result& result, const Case& bench_case, int warmup, int rounds);
void add_traffic(Result& result, const Case& bench_case, const CaseTraffic& traffic);
/// Sets what all ranks' comparisons with the oracle found, which took `seconds` on the slowest.
void add_verification(Result& result, const Comparison& found, double seconds);
/// Sets the sizes of the smaller case that was verified in the place of the case itself.
void add_verified_case(Result& result, const Case& smaller);
/// Sets the times of all rounds, their statistics, and the readings of devices.
void add_times(Result& result, const Case& bench_case, const Samples& samples);
/// Shortens the times of rounds for a record. Comparisons are made before.
void round_times(Result& result);
/// Sets the statistics of rounds, of one launch or of several.
void set_summary(Result& result, const Summary& summary);
/// Sets the bandwidths of a case that moves a payload in `median` seconds.
void add_bandwidths(Result& result, const Case& bench_case, double median);
void add_conditions(Result& result, const Conditions& conditions);
void add_hosts(Result& result, const HostsOfRanks& hosts, const AlphaBeta& link);
void add_machine(Result& result, const Machine& machine);
void add_failure(Result& result, const Failure& failure);

/// The number of rounds in which each rank was the slowest, the first of equals; empty unless there
/// are the times of as many ranks as the case has, and more than one.
std::vector<int> rounds_as_last(const std::vector<std::vector<double>>& rank_seconds, int ranks);

}  // namespace baton
