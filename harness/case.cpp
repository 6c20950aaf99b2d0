// SPDX-License-Identifier: Apache-2.0
// The product of a sweep's axes.
#include "harness/case.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace baton {
namespace {

/// The collectives, the baseline before all others.
std::vector<const Collective*> in_order(const Axes& axes) {
  auto ordered = axes.collectives;
  std::stable_partition(ordered.begin(), ordered.end(),
                        [&](const auto* c) { return c->name == axes.baseline; });
  return ordered;
}

/// Adds the cases of one contest.
void add_contest(std::vector<Case>& all, const Axes& axes, const Case& contest) {
  for (const Collective* collective : in_order(axes)) {
    if (contest.direction == Direction::reverse && collective->kind != Kind::exclusive_scan) continue;
    Case c = contest;
    c.collective = collective;
    for (int blocks : collective->cuts_blocks ? axes.blocks : std::vector{1}) {
      c.blocks = blocks;
      all.push_back(c);
    }
  }
}

}  // namespace

const char* to_string(Cadence cadence) { return cadence == Cadence::isolated ? "isolated" : "streaming"; }

std::string Case::name() const {
  const std::string cut = blocks == auto_blocks ? "auto" : std::to_string(blocks);
  return fmt::format("{}/{}/blocks:{}", collective->name, point(), cut);
}

std::string Case::contest() const { return fmt::format("{}/{}", to_string(collective->kind), point()); }

std::string Case::point() const {
  const std::string repetition = cycle == 0 ? "" : fmt::format("/cycle:{}", cycle);
  return fmt::format("{}/ranks:{}/{}/heads:{}/d_k:{}/d_v:{}/tokens:{}/{}{}", executor, ranks,
                     to_string(direction), shape.heads, shape.d_k, shape.d_v, shape.tokens,
                     to_string(cadence), repetition);
}

std::vector<Case> cases(const Axes& axes) {
  std::vector<Case> all;
  for (int cycle = 1; cycle <= axes.cycles; ++cycle)
    for (const std::string& executor : axes.executors)
      for (int ranks : axes.ranks)
        for (const Shape& shape : axes.shapes)
          for (Cadence cadence : axes.cadences)
            for (Direction direction : axes.directions)
              add_contest(
                  all, axes,
                  {nullptr, executor, ranks, direction, shape, 1, cadence, axes.cycles > 1 ? cycle : 0});
  return all;
}

}  // namespace baton
