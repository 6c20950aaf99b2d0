// SPDX-License-Identifier: Apache-2.0
// Cases, each of which is a workload on a backend, and what their schedules cost.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/cases/axis_values.hpp"
#include "harness/cases/backend.hpp"
#include "harness/cases/workload.hpp"

namespace baton {

/// How rounds are timed: each from a common start; back to back; or back to back from a recording
/// that the device replays without its host.
enum class Cadence { isolated, streaming, graph };

const char* to_string(Cadence mode);

/// A number of blocks that the alpha-beta model chooses.
inline constexpr int auto_blocks = 0;

/// One point of a sweep. It becomes one row.
struct Case {
  std::shared_ptr<const Workload> workload;
  /// What runs the case, one of `backends()`.
  const Backend* backend = nullptr;
  int ranks = 1;
  int blocks = 1;
  Cadence cadence = Cadence::isolated;
  /// The repetition of the whole sweep that the case belongs to, from 1; 0 if there is only one.
  int cycle = 0;
  /// Ranks on a full node; 0 for all on one node.
  int ranks_per_node = 0;
  /// Ranks that take turns on one GPU. With more than one, times are no measure of a link.
  int ranks_per_gpu = 1;
  /// Busy threads of a rank: 2 in a layer of which one computes while the other exchanges.
  int threads_per_rank = 1;

  /// How the sequence and the state are split if the state is cut into `cut` blocks.
  Split split(int cut) const { return {.ranks = ranks, .blocks = cut, .ranks_per_node = ranks_per_node}; }

  /// The axes of the case and of its workload, in the order of the case's name.
  AxisValues axes() const;

  /// The name of the case for Google Benchmark, without the line break of this example:
  /// all_scan/mpi/ranks:4/exclusive_scan/forward/
  /// heads:32/d_k:128/d_v:128/tokens:8192/isolated/blocks:auto
  std::string name() const;

  /// The name without the cycle: rows of two runs with the same key are the same case.
  std::string key() const;

  /// The axes that all cases of a comparison group share: all but the algorithm, its variant and
  /// its blocks.
  std::string comparison_group() const;

  /// The axes that all cases of a contest share: the axes of a comparison group without the cycle,
  /// the family in place of the executor, and the attention of a layer.
  std::string contest() const;
};

/// The number of processes that a case needs; 0 if it runs in one that has no launcher.
inline int processes_of(const Case& one) { return one.backend->process_per_rank ? one.ranks : 0; }

/// The number of blocks that `bench_case` can run with if `asked` for: at most one for each row of
/// its state.
int possible_blocks(const Case& bench_case, int asked);

/// "schedule", or the name of the native that the schedules call.
std::string implementation_of(const std::vector<Schedule>& schedules);

/// The cost of a case: counted from its schedules, or claimed if a native does the work. Throws
/// ScheduleError if the schedules are wrong, or cost something else than their author claims.
std::optional<Cost> cost_of(const Case& bench_case, int blocks, const std::vector<Schedule>& schedules);

/// Throws ScheduleError unless the author of `bench_case` claims what was counted.
void require_claim(const Case& bench_case, int blocks, const Cost& counted);

/// The size of a case's schedules and buffers, of all ranks together.
struct Extent {
  double steps = 0;
  double buffer_bytes = 0;

  /// Memory for `copies` of the schedules while they are built, proved and run.
  double schedule_bytes(int copies = 1) const;
};

/// An estimate that builds the schedules of a few ranks only.
Extent extent_of(const Case& bench_case, int blocks);

/// Returns the reason why `bytes`, of `processes` processes of this host together, and what their
/// verification and MPI need, do not fit in what is left with `held` bytes that become free; empty
/// if they fit.
Refusal lacks_memory(double bytes, int processes = 1, double held = 0);

}  // namespace baton
