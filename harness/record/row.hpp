// SPDX-License-Identifier: Apache-2.0
// A row of a table: a case with its result over all launches so far, beside its rivals'.
#pragma once

#include <optional>
#include <string>

#include "harness/cases/case.hpp"
#include "harness/measure/statistics.hpp"
#include "harness/record/result.hpp"

namespace baton {

struct Row {
  Case bench_case;
  /// The result of the last launch that has one. Statistics, ratios and the bound are those over
  /// all launches.
  Result result;
  /// The launches that timed the case.
  int launches = 1;
  /// True for the fastest row of a contest; `to_fastest` is the time over that row's.
  bool is_fastest = false;
  std::optional<Ratio> to_fastest;
  /// The bound over the time, launch by launch, of several launches.
  std::optional<Ratio> bound_share;

  bool is_timed() const { return result.is_timed(); }
  bool is_simulated() const { return !bench_case.backend->is_measured; }
  /// True for ranks that wait for their turn on a core or on a GPU.
  bool is_crowded() const;
  double median() const { return result.real("median_seconds"); }
  /// The share of --peak that a model needs to take `seconds`: 1 is all of it. Empty without a
  /// peak.
  std::optional<double> peak_share(double seconds) const;
  /// The reason why the time cannot be, such as "takes 11798 % of --peak, ..."; empty if it can.
  /// More than all of a peak cannot be, nor a time below the bound by more than its error.
  std::string why_impossible() const;
};

}  // namespace baton
