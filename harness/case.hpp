// SPDX-License-Identifier: Apache-2.0
// One point of a sweep: a question that gets one row.
#pragma once

#include <string>
#include <vector>

#include "collectives/collective.hpp"

namespace baton {

/// How rounds follow one another: each from a common start, or back to back.
enum class Cadence { isolated, streaming };

const char* to_string(Cadence cadence);

/// Blocks to be chosen by the alpha-beta model.
inline constexpr int auto_blocks = 0;

struct Case {
  const Collective* collective = nullptr;
  std::string executor;
  int ranks = 1;
  Direction direction = Direction::forward;
  Shape shape;
  int blocks = 1;
  Cadence cadence = Cadence::isolated;
  /// Which repetition of the whole sweep this is, from 1; 0 where there is only one.
  int cycle = 0;

  /// The name of the case for Google Benchmark, such as
  /// all_scan/mpi/ranks:4/forward/heads:32/d_k:128/d_v:128/tokens:8192/isolated/blocks:auto.
  std::string name() const;

  /// What two cases share that are compared with one another: everything but the algorithm and its blocks.
  std::string contest() const;

 private:
  std::string point() const;
};

/// The axes of a sweep.
struct Axes {
  std::vector<const Collective*> collectives;
  std::vector<std::string> executors;
  std::vector<int> ranks;
  std::vector<Direction> directions;
  std::vector<Shape> shapes;
  std::vector<int> blocks;
  std::vector<Cadence> cadences;
  /// How often the whole sweep is repeated.
  int cycles = 1;
  /// Goes first at every point, so that the others can be compared with it; may be empty.
  std::string baseline;
};

/// The product of the axes, contest by contest. Direction and blocks vary only where they mean something.
std::vector<Case> cases(const Axes& axes);

}  // namespace baton
