// SPDX-License-Identifier: Apache-2.0
// What is run: a collective, a layer or a model, whatever backend runs it.
#pragma once

#include <cstdint>
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

enum class WorkloadKind { collective, layer, model };

/// What of its algorithm a row runs: all as published, all while each exchange is waited for at
/// once, or the computation alone. `whole` is all that a row without an exchange, or without such
/// a choice, can run.
enum class Variant { whole, published, exposed, without_exchange };

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
  virtual WorkloadKind kind() const { return WorkloadKind::collective; }
  /// True for a layer. Also true for a model, which consists of layers.
  bool is_layer() const { return kind() != WorkloadKind::collective; }
  bool is_model() const { return kind() == WorkloadKind::model; }
  virtual Variant variant() const { return Variant::whole; }
  /// The axes that all rows of a comparison group share, such as "forward/heads:32".
  std::string shape_name() const { return axes().folded(in_group); }
  /// The name with the scan and the shares that were asked for, such as "zeco (ring_scan, even)".
  std::string title() const;
  /// The axis that tells rows of one title and shape apart, such as "overlapped"; may be empty.
  std::string variant_name() const;

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
  /// This workload on so many ranks, if its sizes depend on them; null otherwise.
  virtual std::shared_ptr<const Workload> sized(int /*ranks*/) const { return nullptr; }
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

}  // namespace baton
