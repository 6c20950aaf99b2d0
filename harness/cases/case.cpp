// SPDX-License-Identifier: Apache-2.0
// The product of a sweep's axes.
#include "harness/cases/case.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace baton {
namespace {

/// Adds the cases of one contest at the point that `base` describes.
void add_contest(std::vector<Case>& all, const Axes& axes,
                 std::vector<std::shared_ptr<const Workload>> workloads, const Case& base) {
  std::stable_partition(workloads.begin(), workloads.end(),
                        [&](const auto& w) { return w->name() == axes.baseline; });
  for (const auto& workload : workloads)
    for (int blocks : workload->cuts_blocks() ? axes.blocks : std::vector{1}) {
      all.push_back(base);
      all.back().workload = workload;
      all.back().blocks = blocks;
    }
}

}  // namespace

const char* to_string(Cadence cadence) {
  switch (cadence) {
    case Cadence::isolated: return "isolated";
    case Cadence::streaming: return "streaming";
    case Cadence::graph: return "graph";
  }
  return "?";
}

std::string Case::name() const {
  const std::string variant = workload->variant().empty() ? "" : workload->variant() + "/";
  const std::string cut = blocks == auto_blocks ? "auto" : std::to_string(blocks);
  return fmt::format("{}/{}{}/blocks:{}", workload->name(), variant, contest(), cut);
}

std::string Case::contest() const {
  const std::string repetition = cycle == 0 ? "" : fmt::format("/cycle:{}", cycle);
  const std::string nodes = ranks_a_node == 0 ? "" : fmt::format("/ranks_a_node:{}", ranks_a_node);
  return fmt::format("{}/ranks:{}{}/{}/{}{}", executor, ranks, nodes, workload->point(), to_string(cadence),
                     repetition);
}

std::vector<Case> cases(const Axes& axes) {
  std::vector<Case> all;
  for (int cycle = 1; cycle <= axes.cycles; ++cycle)
    for (const std::string& executor : axes.executors)
      for (int ranks : axes.ranks)
        for (Cadence cadence : axes.cadences)
          for (const auto& contest : axes.contests)
            add_contest(
                all, axes, contest,
                {nullptr, executor, ranks, 1, cadence, axes.cycles > 1 ? cycle : 0, axes.ranks_a_node});
  return all;
}

}  // namespace baton
