// SPDX-License-Identifier: Apache-2.0
// One round as a file that trace viewers show.
#pragma once

#include <span>
#include <string>

#include "collectives/executors/timing.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// The origin of a trace.
struct TraceTitle {
  /// The name of the case (Case::name).
  std::string case_name;
  std::string executor;
  /// The number of blocks that ran.
  int blocks = 1;
  std::string commit;
};

/// One round of `schedules`, one a rank, as the JSON text of a Chrome trace, which ui.perfetto.dev
/// and chrome://tracing show: ranks as groups of rows, steps as spans, messages as arrows. Times
/// are microseconds since the common start.
///
/// Each rank has a row for each kind of step. Spans of one row never overlap: steps that ran at
/// once have rows of their own ("sends 2"). The span of a receive begins when both it and its send
/// had started; its argument `posted` is its own start. Steps that are not in `times` are left out,
/// and so are their arrows.
std::string chrome_trace(std::span<const Schedule> schedules, std::span<const StepTime> times,
                         const TraceTitle& title);

}  // namespace baton
