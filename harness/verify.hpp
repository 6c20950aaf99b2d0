// SPDX-License-Identifier: Apache-2.0
// The oracle: what every rank's result must be, from a serial fold on one process.
#pragma once

#include <cstdint>
#include <string>

#include "collectives/collective.hpp"
#include "collectives/executors/executor.hpp"
#include "harness/workload.hpp"

namespace baton {

/// One collective's run to be checked.
struct Subject {
  Kind kind = Kind::exclusive_scan;
  Shape shape;
  int ranks = 1;
  Direction direction = Direction::forward;
  std::uint64_t seed = 1;
};

/// Writes exact inputs into, and poison over the outputs of, this process's ranks.
void write_inputs(Executor& executor, const Subject& subject);

/// Compares the outputs of this process's ranks with the oracle's, to the last bit.
Comparison compare(const Executor& executor, const Subject& subject);

}  // namespace baton
