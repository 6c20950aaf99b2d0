// SPDX-License-Identifier: Apache-2.0
// Workloads, the backends that run them, and cases, each of which is a workload on a backend.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/collective.hpp"
#include "collectives/executors/executor.hpp"
#include "harness/cases/axis_values.hpp"

namespace baton {

class Oracles;
struct Comparison;

/// Something that can be built, verified and timed on any executor.
class Workload {
 public:
  virtual ~Workload() = default;

  /// The name of the row: a collective's or a method's.
  virtual std::string name() const = 0;
  /// The values of all axes, in the order of a case's name. Axes in which rivals differ, such as
  /// the row's name, are a part of the name alone.
  virtual AxisValues axes() const = 0;
  /// The kind of the maps that ranks exchange.
  virtual MapKind map() const { return MapKind::diagonal; }
  /// True for a layer. Also true for a model, which consists of layers.
  bool is_layer() const { return axes().has("pass"); }
  bool is_model() const { return axes().has("model"); }
  /// The axes that all rows of a comparison group share, such as "forward/heads:32".
  std::string shape_name() const { return axes().folded(in_group); }
  /// The axes that distinguish rows of one name, shape and scan; may be empty.
  std::string variant() const;

  /// Bytes of one rank's state, for the table and for the choice of blocks.
  virtual std::int64_t state_bytes() const = 0;
  virtual std::int64_t state_rows() const = 0;
  virtual bool cuts_blocks() const { return false; }

  /// The name of the native that the schedules call; empty if they call none.
  virtual std::string native() const;
  /// The reason why the workload cannot run on so many ranks; empty if it can.
  virtual Refusal unsupported(int /*ranks*/) const { return {}; }
  /// One rank's schedule. The workload sets the direction, whatever `split` says.
  virtual Schedule build_rank(int rank, const Split& split) const = 0;
  /// The schedules of all ranks.
  std::vector<Schedule> build(const Split& split) const;
  /// The cost that the author claims: hops below 0 if only bytes are claimed, empty without a
  /// claim.
  virtual std::optional<Cost> claim(const Split& split) const = 0;

  /// Fills the inputs of this process's ranks from `seed`, and poisons their outputs. `schedules`
  /// are those of `build`, one a rank, which the executor has prepared. Collective over the
  /// processes of `oracles`.
  virtual void load(Executor& executor, const std::vector<Schedule>& schedules, std::uint64_t seed,
                    Oracles& oracles) const = 0;
  /// Compares the outputs of rounds over the inputs of `seed` with the oracle. Collective over the
  /// processes of `oracles`.
  virtual Comparison compare(const Executor& executor, const std::vector<Schedule>& schedules,
                             std::uint64_t seed, Oracles& oracles) const = 0;
  /// Loads the inputs, runs one round and compares its outputs with the oracle. Collective over the
  /// processes of `oracles`.
  Comparison verify(Executor& executor, const std::vector<Schedule>& schedules, std::uint64_t seed,
                    Oracles& oracles) const;
  /// Names of outputs whose last bits may differ between rounds, since a library sums them in no
  /// fixed order.
  virtual std::vector<std::string> varying_outputs() const { return {}; }
  /// A smaller workload of the same algorithm, which one process verifies on `ranks` ranks in
  /// milliseconds.
  virtual std::shared_ptr<const Workload> reduced(int ranks) const = 0;
  /// This workload with twice as many values a head, if that doubles its states and not its
  /// matrices; null otherwise.
  virtual std::shared_ptr<const Workload> with_twice_the_values() const { return nullptr; }

  /// Bytes of a rank's result; `port_bytes` counts those that must cross its port
  /// (docs/metrics.md).
  virtual double payload_bytes(int ranks) const = 0;
  virtual double port_bytes(int ranks) const = 0;
};

/// One of the executors, or the simulator.
struct Backend {
  std::string name;
  std::string summary;
  /// True if each rank is a process of its own.
  bool process_per_rank = false;
  /// True if rounds run and take time; false for the simulator, which computes times from a
  /// topology.
  bool is_measured = true;
  /// Default dtype of a layer's tensors.
  Dtype tensors = Dtype::f32;
  /// The group of backends whose rows compete: "GPUs" for all executors on GPUs with an f32 wire,
  /// elsewhere the name of the backend.
  std::string family;
  /// Returns true if the backend runs the native called `name`. For the simulator a topology says
  /// so (`Axes::simulated_natives`).
  std::function<bool(const std::string& name)> runs_native;
  /// True if ranks of the backend can share a GPU.
  bool shares_gpus = false;
  /// The threads that a rank can keep busy: 2 if one computes while the other exchanges.
  int most_threads = 1;
  /// Returns the reason why this machine cannot run so many ranks; empty if it can. Needs no MPI.
  std::function<Refusal(int ranks)> lacking;
};

/// All backends, by name.
const std::vector<Backend>& backends();

/// The backend called `name`. Throws UsageError if there is none.
const Backend& find_backend(const std::string& name);

/// How rounds are timed: each from a common start; back to back; or back to back from a recording
/// that the device replays without its host.
enum class Cadence { isolated, streaming, graph };

const char* to_string(Cadence mode);

/// A number of blocks that the alpha-beta model chooses.
inline constexpr int auto_blocks = 0;

/// One point of a sweep. It becomes one row.
struct Case {
  std::shared_ptr<const Workload> workload;
  /// The name of the backend that runs the case.
  std::string executor;
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
