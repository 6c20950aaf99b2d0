// SPDX-License-Identifier: Apache-2.0
// The answer to one case: what was asked, verified and measured, and how it stands among others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/schedule/check.hpp"
#include "harness/cases/case.hpp"
#include "harness/cases/matrices.hpp"
#include "harness/measure/alpha_beta.hpp"
#include "harness/measure/hosts.hpp"
#include "harness/measure/samples.hpp"
#include "harness/measure/statistics.hpp"
#include "harness/process/conditions.hpp"
#include "harness/record/standings.hpp"

namespace baton {

/// The result of all ranks' comparisons with the oracle.
struct Verified {
  /// Elements that differ, or tensors outside their tolerance.
  std::int64_t wrong = 0;
  /// A description of the first wrong element or tensor.
  std::string first_wrong;
  double relative_error = 0;
  /// The largest relative error that would have passed; 0 if the comparison was exact.
  double tolerance = 0;
  /// Elements of a collective's results that were compared, over all ranks.
  std::int64_t elements = 0;
  /// Tokens a rank of a layer that were compared with the recurrence; `heads` has the compared
  /// heads.
  std::int64_t tokens = 0;
  std::vector<std::int64_t> heads;
  /// Seconds that the slowest process spent on verification.
  double seconds = 0;
  /// The smaller case that was verified in place of a simulated one.
  std::optional<Case> verified_case;
};

/// The result of two comparisons of the same case together.
Verified sum(Verified before, const Verified& after);

/// The failure of a case that its processes did not survive, or whose schedule is wrong.
struct Failure {
  std::string reason;
  std::optional<int> rank, step;
  int exit_code = 0;
  double seconds = 0;
};

/// The answer to one case. Built once, from what its runner returned, and constant after that.
struct Record {
  Case bench_case;
  /// "schedule", or the native's name.
  std::string implementation = "schedule";
  /// The number of blocks that ran: the model's, or as many of those asked for as are possible.
  int blocks = 1;
  /// Ranks on a full node, 0 for all on one: the number asked for, or that of the hosts or of the
  /// simulated machine.
  int ranks_per_node = 0;
  int warmup = 0;
  int rounds = 0;
  /// The reason why the case did not run; then there are no timings.
  std::string skipped;
  /// The failure, if the case failed; then there are no timings.
  std::optional<Failure> failure;
  /// Bytes and hops of the schedules; empty if a native does not tell.
  std::optional<Cost> cost;
  /// Cost of the matrices of affine maps, if there are any; `sent_bytes` are those on the wire.
  std::optional<MatrixCost> matrices;
  /// Memory of the schedules' buffers on the rank that has most; empty if a native does the work.
  std::optional<Footprint> footprint;
  /// Messages of all ranks together; known for simulated rounds only.
  std::optional<std::int64_t> messages;
  /// The bound in seconds if it does not follow from `alpha_beta` alone: with simulated links, with
  /// links within and between hosts, or in a record that was read.
  std::optional<double> known_bound_seconds;
  AlphaBeta alpha_beta;
  /// Names and versions of the accelerators that ran the case; empty on processors.
  std::vector<std::pair<std::string, std::string>> device_facts;
  /// How far apart the ranks start a round, in seconds. Not a number if unknown.
  double start_skew_seconds = 0;
  /// What carries messages between ranks of one host; may be empty.
  std::string transport{};
  /// Facts about the hosts of the ranks; empty on a single host.
  std::optional<HostsOfRanks> hosts;
  /// Load of the host during the measurement; empty for simulated rounds.
  std::optional<Conditions> conditions;
  Verified verified;
  /// The dtype of f32 elements within messages.
  Dtype wire = Dtype::f32;
  Samples samples;
  /// Seconds that the slowest process spent in the warm-up and the timed rounds.
  double timed_seconds = 0;
  Summary summary;
  Standing standing;
  std::optional<OverLaunches> over_launches;
  /// The place in the contest, known when the contest is over. It is no part of the JSON line.
  Place place;
  /// The bound over the time, launch by launch, of several launches; as the place no part of the
  /// JSON line.
  std::optional<Ratio> bound_share;
  /// The name of the simulated machine, or of the machine of the prediction.
  std::string topology;
  /// The machine, executor and commit that the topology of a simulated row was calibrated with;
  /// empty if it was not calibrated.
  std::string stands_on;
  /// The simulator's time for a measured row.
  std::optional<double> predicted_seconds;
  /// The reason why a predicted or simulated time goes beyond what its topology was calibrated
  /// with; empty if it does not.
  std::string extrapolated;

  bool is_timed() const { return !samples.seconds.empty(); }
  /// The summary that the table shows: over all launches so far, or else of this launch.
  const Summary& shown() const { return over_launches ? over_launches->summary : summary; }
  const Standing& shown_standing() const { return over_launches ? over_launches->standing : standing; }
  std::optional<double> bound_seconds() const;
  /// The share of --peak that a model needs to take `seconds`: 1 is all of it. Empty without a
  /// peak.
  std::optional<double> peak_share(double seconds) const;
  /// The reason why the time cannot be, such as "takes 11798 % of --peak, ..."; empty if it can.
  /// More than all of a peak cannot be, nor a time below the bound by more than its error.
  std::string why_impossible() const;
  /// Floating-point operations of products of affine maps on the rank that has most.
  double product_flops() const { return matrices ? matrices->product_flops : 0; }
  /// The number of rounds in which each rank was the slowest, the first of equals; empty if the
  /// ranks' times are not known one by one.
  std::vector<int> rounds_as_last() const;
  /// The number of rounds in which each rank was the slowest, where the ranks' times are not kept.
  std::vector<int> known_rounds_as_last;
};

}  // namespace baton
