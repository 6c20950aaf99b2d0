// SPDX-License-Identifier: Apache-2.0
// Findings, the limits beyond which readings are some, and the words that all judges share.
#pragma once

#include <string>
#include <vector>

#include "harness/doctor/readings.hpp"

namespace baton::doctor {

struct Finding {
  enum class Weight {
    /// A fault: the machine is not fit to measure on until it is mended.
    problem,
    /// A condition that may be intended.
    note,
  };

  Weight weight = Weight::problem;
  /// The subject: rank, link, clock, load, binding, build or host.
  std::string about;
  /// The ranks that the finding concerns; empty for none in particular.
  std::vector<int> ranks;
  std::string what;
  /// The advice to the user.
  std::string advice;
};

/// True if the median of `repeats` is at least `least` and at least four of five repeats reach half
/// of `least`. One disturbance is thus no finding, however large. False without repeats.
bool exceeds(const Repeats& repeats, double least);

/// The median of `repeats`, or `otherwise` if there are none.
double typical(const Repeats& repeats, double otherwise = 0);

double mean(const Repeats& repeats);

/// A noun with numbers, such as "rank 1", "ranks 0 and 2" or "ranks 0 to 3"; `noun` is the
/// singular.
std::string counted(const std::string& noun, std::vector<int> numbers);

/// Seconds with three digits and a unit, such as "4.21 ms".
std::string shown_seconds(double seconds);

/// A fraction in percent, such as "49 %".
std::string percent(double part);

/// A slowdown in words, such as "1.3 times" for an excess of 0.3.
std::string times(double excess);

/// The limits beyond which a reading is a finding. docs/doctor.md explains each.
struct Limits {
  /// A rank is late if its time for the same work exceeds the fastest rank's by this part.
  static constexpr double late = 0.10;
  /// The part of a rank's time for which other threads have its core.
  static constexpr double waited = 0.05;
  /// The part of a core's time that other processes use while all ranks sleep.
  static constexpr double busy = 0.10;
  /// The part of a core's time that a hypervisor takes.
  static constexpr double stolen = 0.05;
  /// The part by which a clock is below its core's base clock, or below the clocks of other ranks.
  static constexpr double clock = 0.05, clock_beside = 0.10;
  /// A pair is slow if the time of its small or large messages exceeds that of other pairs by this
  /// part.
  static constexpr double small_message = 1.0, large_message = 0.5;
  /// The smallest difference of two times that counts, in seconds.
  static constexpr double least_seconds = 1e-6;
  /// The longest latency in seconds of a pair of ranks on one host, and its least bytes a second.
  /// They hold even if there is no other pair to compare with.
  static constexpr double host_seconds = 20e-6, host_bytes_per_second = 0.5e9;
  static constexpr double device_bytes_per_second = 10e9;
  static constexpr double timer_seconds = 250e-9;
};

}  // namespace baton::doctor
