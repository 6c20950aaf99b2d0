// SPDX-License-Identifier: Apache-2.0
// Sweeps over workloads, backends and the axes of both, whose points are cases.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/cases/case.hpp"

namespace baton {

/// The axes of a sweep.
struct Axes {
  std::vector<std::string> executors;
  /// A case for each point of the axes that all workloads and executors share, in the order of the
  /// tables: ranks, ranks a node, threads, timing. 0 threads stand for two where each has a core,
  /// and ranks a GPU hold for backends that can share one.
  std::vector<Case> points;
  std::vector<int> blocks;
  /// How often the whole sweep is repeated.
  int cycles = 1;
  /// The natives that the topology of the simulator has times of.
  std::set<std::string> simulated_natives;
  /// The name of the rows that all ratios refer to; may be empty.
  std::string baseline;
  /// The workloads of each comparison group.
  std::vector<std::vector<std::shared_ptr<const Workload>>> comparison_groups;

  bool runs_native(const Backend& backend, const std::string& native) const {
    return backend.is_measured ? backend.runs_native(native) : simulated_natives.contains(native);
  }
};

/// All cases of a sweep, contest by contest, the baseline first in each. Blocks vary only for
/// workloads that cut the state, and no case is there twice. Workloads that call a native of
/// another backend are left out.
/// Throws UsageError if the cases are more than anyone can read, or if none is left.
std::vector<Case> cases(const Axes& axes);

}  // namespace baton
