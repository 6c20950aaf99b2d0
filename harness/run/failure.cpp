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

bool FailuresInARow::are_alike(int one, int other) const {
  const Case &a = cases_[one], &b = cases_[other];
  return a.backend == b.backend && a.ranks == b.ranks &&
         (!by_name_ || a.workload->name() == b.workload->name());
}

std::vector<int> FailuresInARow::add(int index) {
  constexpr std::size_t enough = 3;
  if (!failed_.empty() && !are_alike(failed_.back(), index)) clear();
  failed_.push_back(index);
  std::vector<int> given_up;
  for (int other = 0; other < static_cast<int>(cases_.size()) && failed_.size() >= enough; ++other)
    if (are_alike(index, other)) given_up.push_back(other);
  return given_up;
}

std::string FailuresInARow::reason() const {
  const Case& failed = cases_[failed_.back()];
  return fmt::format("not tried, since {} cases of {} at {} ranks failed before", failed_.size(),
                     failed.backend->name, failed.ranks);
}

}  // namespace baton
