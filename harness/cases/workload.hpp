// SPDX-License-Identifier: Apache-2.0
// What a case measures, as the harness sees it: schedules, a way to verify them, and words and numbers for the row.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collectives/collective.hpp"
#include "collectives/executors/executor.hpp"

namespace baton {

/// What a comparison with the oracle found in this process's ranks.
struct Comparison {
  /// Elements that differ, or tensors outside their tolerance.
  std::int64_t wrong = 0;
  /// The first of them, for people.
  std::string first;
  /// The largest ||got - expected|| / ||expected|| of a tensor; 0 where the comparison is exact.
  double relative_error = 0;
  /// The largest relative error that would have passed; 0 where the comparison is exact.
  double tolerance = 0;
};

/// Something that can be built, verified and timed on any executor.
class Workload {
 public:
  virtual ~Workload() = default;

  /// The row's name: a collective's or a method's.
  virtual std::string name() const = 0;
  /// The axes that those compared with one another share, for the case's name, such as "forward/heads:32".
  virtual std::string point() const = 0;
  /// The axes that tell rows of one name and point apart; may be empty.
  virtual std::string variant() const { return {}; }

  /// The size of one rank's state, for the table and for the choice of blocks.
  virtual std::int64_t state_bytes() const = 0;
  virtual std::int64_t state_rows() const = 0;
  virtual bool cuts_blocks() const { return false; }

  /// Why it cannot run on so many ranks, or an empty string.
  virtual Refusal unsupported(int /*ranks*/) const { return {}; }
  /// One rank's schedule. The direction is the workload's own, whatever `split` says.
  virtual Schedule build_rank(int rank, const Split& split) const = 0;
  /// The schedules of all ranks.
  std::vector<Schedule> build(const Split& split) const;
  /// What their author says they cost; empty where nobody says.
  virtual std::optional<Claim> claim(const Split& split) const = 0;

  /// Runs on inputs of `seed` and compares with the oracle. The executor has the schedules of `build` prepared, before
  /// and after. Collective over the executor's ranks.
  virtual Comparison verify(Executor& executor, const Split& split, std::uint64_t seed) const = 0;
  /// Fills the inputs for the timed rounds and poisons the outputs, so that nothing is left of a verified run.
  virtual void load(Executor& executor, int ranks, std::uint64_t seed) const = 0;
  /// Compares what the timed rounds left with what `load` asked for.
  virtual Comparison verify_timed(const Executor& executor, int ranks, std::uint64_t seed) const = 0;

  /// The same text at a size that one process verifies in no time.
  virtual std::shared_ptr<const Workload> reduced() const = 0;

  /// Bytes that a rank's result holds, and those of them that must cross its port (docs/metrics.md).
  virtual double payload_bytes(int ranks) const = 0;
  virtual double port_bytes(int ranks) const = 0;

  /// Adds its keys to a record.
  virtual void describe(nlohmann::ordered_json& json) const = 0;
  /// Adds keys that say at which size it is verified, where that is not its own.
  virtual void describe_verification(nlohmann::ordered_json& /*json*/, int /*ranks*/) const {}
};

inline std::vector<Schedule> Workload::build(const Split& split) const {
  std::vector<Schedule> schedules;
  schedules.reserve(split.ranks);
  for (int rank = 0; rank < split.ranks; ++rank) schedules.push_back(build_rank(rank, split));
  return schedules;
}

}  // namespace baton
