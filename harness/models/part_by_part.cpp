// SPDX-License-Identifier: Apache-2.0
#include "harness/models/part_by_part.hpp"

#include <utility>
#include <vector>

#include "harness/layers/verify.hpp"
#include "harness/models/linear_layers.hpp"
#include "harness/models/sampled.hpp"
#include "harness/models/sampled_steps.hpp"
#include "harness/models/shards.hpp"
#include "harness/models/softmax_layers.hpp"
#include "harness/models/whole_heads.hpp"

namespace baton {

Comparison compare_sampled(const Executor& executor, std::span<const Schedule> schedules,
                           const ModelProblem& problem, const Team& team) {
  std::vector<RankTensors> ranks;
  for (const int rank : executor.local_ranks()) ranks.emplace_back(executor, schedules, rank);
  const OracleWork work = shared_work(team);
  const SampledRun run{problem, ranks, work, team, wire_roundoff(executor)};
  // The order is that of the reasons: a wrong exchange also shows in what follows from it.
  const bool has_linear = problem.stack.shape.softmax_layers() < problem.stack.shape.count();
  Comparison found =
      has_linear && has_whole_heads(problem.stack) ? compare_whole_heads(run) : compare_linear_layers(run);
  found = sum(std::move(found), compare_softmax_layers(run));
  found = sum(std::move(found), compare_shards(run));
  return sum(std::move(found), compare_steps(run));
}

}  // namespace baton
