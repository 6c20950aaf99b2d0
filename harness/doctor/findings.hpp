// SPDX-License-Identifier: Apache-2.0
// Findings, the limits beyond which readings are some, and the words that all judges share.
#pragma once

#include <string>
#include <vector>

#include "harness/doctor/readings.hpp"

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

}  // namespace baton::doctor
