// SPDX-License-Identifier: Apache-2.0
// One point of a sweep: a question that gets one row.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/cases/workload.hpp"

namespace baton {

/// How rounds follow one another: each from a common start; back to back; or back to back as one recording, which the
/// device runs with no host between them.
enum class Cadence { isolated, streaming, graph };

const char* to_string(Cadence cadence);

/// Blocks to be chosen by the alpha-beta model.
inline constexpr int auto_blocks = 0;

struct Case {
  std::shared_ptr<const Workload> workload;
  std::string executor;
  int ranks = 1;
  int blocks = 1;
  Cadence cadence = Cadence::isolated;
  /// Which repetition of the whole sweep this is, from 1; 0 where there is only one.
  int cycle = 0;
  /// Ranks on a full node; 0 for all on one node.
  int ranks_a_node = 0;

  /// How its sequence is split where the state is cut into `cut` blocks.
  Split split(int cut) const { return {.ranks = ranks, .blocks = cut, .ranks_a_node = ranks_a_node}; }

  /// The name of the case for Google Benchmark, such as
  /// all_scan/mpi/ranks:4/exclusive_scan/forward/heads:32/d_k:128/d_v:128/tokens:8192/isolated/blocks:auto.
  std::string name() const;

  /// What two cases share that are compared with one another: everything but the algorithm, its variant and its blocks.
  std::string contest() const;
};

/// The axes of a sweep.
struct Axes {
  std::vector<std::string> executors;
  std::vector<int> ranks;
  std::vector<int> blocks;
  std::vector<Cadence> cadences;
  /// How often the whole sweep is repeated.
  int cycles = 1;
  /// Ranks on a full node; 0 for all on one node.
  int ranks_a_node = 0;
  /// The rows that all ratios are taken to, by name; may be empty.
  std::string baseline;
  /// What competes, contest by contest.
  std::vector<std::vector<std::shared_ptr<const Workload>>> contests;
};

/// The product of the axes, contest by contest, the baseline first. Blocks vary only where they are cut.
std::vector<Case> cases(const Axes& axes);

}  // namespace baton
