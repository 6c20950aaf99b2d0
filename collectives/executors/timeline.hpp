// SPDX-License-Identifier: Apache-2.0
// When the steps of one round ran.
#pragma once

namespace baton {

/// One step of one rank's schedule, in seconds since the common start of its round.
struct StepTime {
  int rank = 0;
  /// Its index in the rank's schedule.
  int step = 0;
  /// A message starts when it is handed to the library beneath (a receive that waits for its sender has started), and
  /// finishes when this rank knows that it is complete.
  double start_seconds = 0;
  double finish_seconds = 0;
};

}  // namespace baton
