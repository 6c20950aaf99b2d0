// SPDX-License-Identifier: Apache-2.0
// The bound of measured cases, and rounds that are too fast to have done their work.
#pragma once

#include <optional>

#include "collectives/executors/executor.hpp"
#include "collectives/executors/team.hpp"
#include "harness/machine/conditions.hpp"
#include "harness/machine/placement.hpp"
#include "harness/measure/alpha_beta.hpp"
#include "harness/measure/samples.hpp"
#include "harness/runners/runner.hpp"

namespace baton {

/// The link between ranks of an executor, and what it allows.
class LinkCheck {
 public:
  /// `link` is the link as it was measured at the start. All references must outlive the check.
  LinkCheck(Executor& executor, const Team& team, const Placement& placement, int ranks,
            const AlphaBeta& link)
      : executor_(executor), team_(team), placement_(placement), ranks_(ranks), best_link_(link) {}

  /// The bound in seconds over several hosts; empty where one alpha and one beta tell the bound.
  std::optional<double> bound_over_hosts(const Prepared& prepared, const AlphaBeta& link) const;

  /// Finds an error if the median is so far below the bound, or below an empty round, that the
  /// rounds cannot have done their work in this time. The link is measured again first, a few
  /// times, since it may have been busy before. Where others take cores from the ranks no
  /// measurement of it is near its best, and nothing is said.
  /// `load` is read after these measurements: rounds alone may be too short to know it. A rank that
  /// starts late may find its first message there, so that a round can seem shorter by
  /// `start_skew_seconds`, for which at most one alpha is allowed. Collective over the team.
  Comparison too_fast(const Prepared& prepared, const Samples& samples, double start_skew_seconds,
                      HostLoad& load);

 private:
  double bound(const Prepared& prepared, const AlphaBeta& link) const;

  Executor& executor_;
  const Team& team_;
  const Placement& placement_;
  int ranks_;
  AlphaBeta best_link_;  // the link at its best, which judges rows alone
};

}  // namespace baton
