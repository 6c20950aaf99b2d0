// SPDX-License-Identifier: Apache-2.0
#include "harness/runners/calibrator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/schedule/errors.hpp"
#include "harness/cases/case.hpp"
#include "harness/machine/placement.hpp"
#include "harness/machine/system.hpp"
#include "harness/measure/calibration.hpp"
#include "harness/options/options.hpp"
#include "harness/process/output.hpp"
#include "harness/record/cells.hpp"

namespace baton {

bool Calibrator::is_asked(const Options& options, int ranks) {
  return !options.calibrate.empty() && (ranks > 1 || options.calibrates_kernels_alone());
}

Calibrator::Calibrator(const Options& options, Executor& executor, const Team& team,
                       const Placement& placement, const std::string& name,
                       const std::optional<Topology>& links)
    : options_(options), executor_(executor), team_(team), ranks_(placement.ranks()) {
  const std::string on = placement.hosts() > 1 ? " on " + placement.words() : "";
  const std::string stands_on = fmt::format("{}, executor {}, {}{}, commit {}, {}", machine(), name,
                                            quantity(ranks_, "rank"), on, commit(), utc_now());
  if (options.calibrates_kernels_alone()) {
    topology_ = awaiting_kernels(links.value(), machine(), stands_on);
    return;  // kept when there are kernels
  }
  topology_ = calibrate(executor, team, placement, stands_on);
  topology_.name = fmt::format("{}, {}", machine(), name);  // distinguishes machines in figures
  keep();
}

/// The name of the accelerators, or of the processor if there are none.
std::string Calibrator::machine() const {
  if (executor_.device() != nullptr)
    for (const auto& [name, value] : executor_.device()->facts())
      if (name == "gpu") return value;
  return machine_name();
}

bool Calibrator::knows(const Schedule& schedule) const {
  const auto& known = topology_.device.kernels;
  return std::all_of(schedule.kernels().begin(), schedule.kernels().end(),
                     [&known](const Kernel& kernel) { return known.contains(kernel.name); });
}

void Calibrator::add_kernels(const Case& bench_case, const std::vector<Schedule>& schedules) {
  if (std::all_of(schedules.begin(), schedules.end(), [this](const Schedule& s) { return knows(s); })) return;
  calibrate_kernels(topology_, executor_, team_, schedules,
                    "measured, as calibration says, in " + bench_case.key());
  keep();
}

/// Writes the file from rank 0, for the largest number of ranks only. Throws SystemError.
void Calibrator::keep() const {
  if (team_.rank() > 0 || ranks_ != options_.calibrated_ranks()) return;
  try {
    write_text(options_.calibrate, write_topology(topology_));
  } catch (const UsageError& error) {
    throw SystemError(error.what());  // of this rank alone
  }
}

}  // namespace baton
