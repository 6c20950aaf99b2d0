// SPDX-License-Identifier: Apache-2.0
// From readings to findings: the judges, each a function of the readings alone, their limits, and
// what they share.
#pragma once

#include <string>
#include <vector>

#include "doctor/readings.hpp"

namespace baton::doctor {

struct Finding {
  enum class Weight {
    /// The machine is not fit to measure on until this is mended.
    problem,
    /// It may be meant so.
    note,
  };

  Weight weight = Weight::problem;
  /// What it is about: rank, link, clock, load, binding, build or host.
  std::string about;
  /// The ranks that it concerns; empty for none in particular.
  std::vector<int> ranks;
  std::string what;
  /// What to do.
  std::string advice;
};

/// True if the median of `repeats` is at least `least` and at least four of five repeats reach half
/// of it. One disturbance is thus no finding, however large. False without any.
bool exceeds(const Repeats& repeats, double least);

/// The median, or `otherwise` without any.
double typical(const Repeats& repeats, double otherwise = 0);

double mean(const Repeats& repeats);

/// "rank 1", "ranks 0 and 2", "ranks 0 to 3"; `noun` is the singular.
std::string counted(const std::string& noun, std::vector<int> numbers);

/// Seconds with three digits and a unit, such as "4.21 ms".
std::string shown_seconds(double seconds);

/// A part of one as "49 %".
std::string percent(double part);

/// How much slower, as "1.3 times" for an excess of 0.3.
std::string times(double excess);

/// The limits beyond which a reading is a finding. docs/doctor.md explains each.
struct Limits {
  /// A rank is late if the same work takes it so much longer than the fastest rank.
  static constexpr double late = 0.10;
  /// The part of its time in which other threads have a rank's core.
  static constexpr double waited = 0.05;
  /// The part of a core's time that others use while all ranks sleep.
  static constexpr double busy = 0.10;
  /// The part of a core's time that a hypervisor takes.
  static constexpr double stolen = 0.05;
  /// How far a clock may be below the one that its core is made for, or below the other ranks'.
  static constexpr double clock = 0.05, clock_beside = 0.10;
  /// A pair is slow if its messages take so much longer than those of other pairs.
  static constexpr double small_message = 1.0, large_message = 0.5;
  /// Differences in latency below this are none.
  static constexpr double least_seconds = 1e-6;
  /// What a pair of one host must reach even if no other pair is there to compare with.
  static constexpr double host_seconds = 20e-6, host_bytes_a_second = 0.5e9;
  static constexpr double device_bytes_a_second = 10e9;
  static constexpr double timer_seconds = 250e-9;
};

/// Ranks that share cores, may move, or have their memory elsewhere.
std::vector<Finding> judge_binding(const Readings& readings);

/// Others on the cores of ranks: processes, control groups, a hypervisor.
std::vector<Finding> judge_load(const Readings& readings);

/// Ranks that are late, and why.
std::vector<Finding> judge_ranks(const Readings& readings);

/// Clocks of cores that are below those that they are made for.
std::vector<Finding> judge_clocks(const Readings& readings);

/// Accelerators that are late, throttled or unlike the others.
std::vector<Finding> judge_devices(const Readings& readings);

/// Pairs that are slower than the others, or than any pair of one host should be.
std::vector<Finding> judge_links(const Readings& readings);

/// What the build or the system lacks.
std::vector<Finding> judge_build(const Readings& readings);

/// The findings of all judges, problems first.
std::vector<Finding> findings_of(const Readings& readings);

/// The ranks that are late on their cores, or wait for them.
std::vector<int> late_ranks(const Readings& readings);

/// True if there is no problem among the findings.
bool is_fit(const std::vector<Finding>& findings);

/// At most 100 columns wide: the verdict, the findings with what to do, then the ranks and a matrix
/// of each executor's links.
std::string text_report(const Readings& readings, const std::vector<Finding>& findings);

/// One object: "fit", "findings" and "readings".
std::string json_report(const Readings& readings, const std::vector<Finding>& findings);

/// The text in lines of at most 100 columns; all but the first begin with `indent` blanks.
std::string wrapped(const std::string& text, int indent);

}  // namespace baton::doctor
