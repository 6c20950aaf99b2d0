// SPDX-License-Identifier: Apache-2.0
// The oracle: what every rank's result must be, from a serial fold on one process.
#pragma once

#include <cstdint>
#include <string>

#include "collectives/collective.hpp"
#include "collectives/executors/executor.hpp"
#include "harness/cases/workload.hpp"

namespace baton {

/// One collective's run to be checked.
struct Subject {
  Kind kind = Kind::exclusive_scan;
  Shape shape;
  int ranks = 1;
  Direction direction = Direction::forward;
  std::uint64_t seed = 1;
};

/// The relative error that roundings on the wire, each of at most `roundoff`, can bring to the state that folds the maps
/// of `before` ranks; 0 where the wire does not round. Rigorous whatever the algorithm: docs/metrics.md derives it.
double scan_tolerance(double roundoff, int before);

/// Writes inputs into, and poison over the outputs of, this process's ranks: exact ones, or Gaussian ones where the
/// executor rounds what it sends.
void write_inputs(Executor& executor, const Subject& subject);

/// Compares the outputs of this process's ranks with the oracle's: to the last bit, or where the executor rounds element
/// by element within `scan_tolerance` of the element with all signs made positive.
Comparison compare(const Executor& executor, const Subject& subject);

}  // namespace baton
