// SPDX-License-Identifier: Apache-2.0
// One round as a Chrome trace, which ui.perfetto.dev and chrome://tracing show: ranks as groups of rows, steps as spans,
// messages as arrows.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "collectives/executors/timing.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// What the trace says of itself.
struct TraceTitle {
  /// The name of the case, as Case::name gives it.
  std::string case_name;
  std::string executor;
  /// Blocks that ran, where the case left them to the model.
  int blocks = 1;
  std::string commit;
};

/// The trace of one round of `schedules`, one a rank. Times are microseconds since the common start, to the nanosecond.
///
/// Each rank is a process with a row for each kind of step; spans of one row never overlap, so what ran at once has
/// rows of its own ("sends 2"). A receive's span begins when both it and its send had started, its argument `posted`
/// tells when it was. Steps that `times` does not tell of are left out, and so are the arrows from and to them.
nlohmann::ordered_json chrome_trace(std::span<const Schedule> schedules, std::span<const StepTime> times,
                                    const TraceTitle& title);

}  // namespace baton
