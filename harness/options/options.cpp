// SPDX-License-Identifier: Apache-2.0
#include "harness/options/options.hpp"

#include <algorithm>

#include "collectives/schedule/errors.hpp"

namespace baton {

int Options::processes() const {
  int most = 0;
  for (const Case& bench_case : cases) most = std::max(most, processes_of(bench_case));
  return dry_run ? 0 : most;
}

int Options::threads() const {
  int most = 1;
  for (const Case& bench_case : cases) most = std::max(most, bench_case.threads_per_rank);
  return most;
}

int Options::calibrated_ranks() const {
  int most = 0;
  bool has_kernels = false;
  std::string measured;
  for (const Case& bench_case : cases) {
    if (!bench_case.backend->is_measured) continue;
    if (!measured.empty() && measured != bench_case.backend->name)
      throw UsageError("--calibrate measures one executor, not both " + measured + " and " +
                       bench_case.backend->name);
    measured = bench_case.backend->name;
    most = std::max(most, bench_case.ranks);
    has_kernels |= bench_case.workload->is_layer();
  }
  if (calibrates_kernels_alone()) {
    if (most != 1 || !has_kernels)
      throw UsageError(
          "--calibrate with --topology takes the links of that file and measures the kernels of layers "
          "on --ranks 1; to measure links, leave out --topology");
  } else if (most < 2) {
    throw UsageError(
        "--calibrate needs an executor that runs, and at least two ranks; with one rank give it the links "
        "of a --topology");
  }
  return most;
}

}  // namespace baton
