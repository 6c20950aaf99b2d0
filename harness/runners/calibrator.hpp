// SPDX-License-Identifier: Apache-2.0
// What --calibrate measures on the ranks of a run, and the file that it leaves.
//
//   two ranks or more       links and local steps, then the kernels of each case as it comes
//   one rank, --topology    the kernels alone, beside the links of that file
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "collectives/executors/team.hpp"
#include "collectives/simulator/topology/topology.hpp"

namespace baton {

class Placement;
struct Case;
struct Options;

/// The topology of one executor and number of ranks while it is measured. The file is written by
/// rank 0, again whenever kernels were added, if these are the most ranks of the run.
class Calibrator {
 public:
  /// True if `options` ask for a calibration on so many ranks.
  static bool is_asked(const Options& options, int ranks);

  /// Measures links and local steps of the executor called `name`, unless `links` are those of
  /// --topology. `options`, `executor` and `team` must outlive it. Collective over the team. Throws
  /// SystemError if the file cannot be written.
  Calibrator(const Options& options, Executor& executor, const Team& team, const Placement& placement,
             const std::string& name, const std::optional<Topology>& links);

  const Topology& topology() const { return topology_; }

  /// Measures the kernels of `schedules`, those of `bench_case`, unless all are known. Collective
  /// over the team. Throws SystemError if the file cannot be written.
  void add_kernels(const Case& bench_case, const std::vector<Schedule>& schedules);

 private:
  std::string machine() const;
  bool knows(const Schedule& schedule) const;
  void keep() const;

  const Options& options_;
  Executor& executor_;
  const Team& team_;
  int ranks_;
  Topology topology_;
};

}  // namespace baton
