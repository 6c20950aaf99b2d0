// SPDX-License-Identifier: Apache-2.0
#include "harness/run/failure.hpp"

#include <fmt/format.h>

#include "harness/machine/system.hpp"

namespace baton {
namespace {

/// The report that says most about where a rank was in the case called `name`: a step says more
/// than a pause between rounds. Null if none says it.
const Report* place_in(const LaunchEnd& end, const std::string& name) {
  const Report* pause = nullptr;
  for (const Report& report : end.reports) {
    if (report.what != Report::What::was || report.part.view() != name) continue;
    if (report.step) return &report;
    if (report.between_rounds && pause == nullptr) pause = &report;
  }
  return pause;
}

}  // namespace

Failure failure_of(const LaunchEnd& end, const std::string& name) {
  const Report* report = end.first_report();
  const Report* place = report != nullptr && report->step ? nullptr : place_in(end, name);
  Failure failure{.reason = end.cause(name), .exit_code = end.exit_code, .seconds = end.seconds};
  if (report != nullptr)
    failure.rank = report->waits_for ? report->waits_for : report->rank;
  else if (end.silence.empty())
    failure.reason = fmt::format("its launch ended with exit code {}{}", end.exit_code,
                                 failure.reason.empty() ? "" : ": " + one_line(failure.reason));
  if (place != nullptr) failure.reason += fmt::format("; {}", place->sentence(name).view());
  if (const Report* where = place != nullptr ? place : report; where != nullptr) failure.step = where->step;
  return failure;
}

}  // namespace baton
