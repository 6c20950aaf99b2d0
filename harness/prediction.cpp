// SPDX-License-Identifier: Apache-2.0
// Asking the simulator.
#include "harness/prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace baton {
namespace {

/// Steps that the search for the best number of blocks may simulate at a time: well under a second.
constexpr double searchable_steps = 1e6;

double simulated_seconds(const Case& question, int blocks, const Topology& topology) {
  return simulate(schedules_of(question, blocks), topology).seconds;
}

/// The model's number of blocks for a chain over the slowest link: what a block costs beyond its bytes is the link's
/// overhead, for its latency passes while the next block is on its way.
int blocks_by_model(const Case& question, const Topology& topology, int most) {
  const bool one_node = question.ranks <= topology.ranks_a_node;
  const LinkClass& link = one_node ? topology.intra_node : topology.inter_node;
  const double state = static_cast<double>(question.workload->state_bytes());
  const double overhead = link.busy_seconds(0), rate = state / (link.busy_seconds(state) - overhead);
  if (overhead <= 0) return most;
  return Link{overhead, rate}.best_blocks(question.ranks, question.workload->state_bytes(), most);
}

}  // namespace

ScheduleSource schedules_of(const Case& question, int blocks) {
  return {question.workload->name(), question.ranks, [&question, blocks](int rank) {
            return question.workload->build_rank(rank, question.split(blocks));
          }};
}

int best_blocks_on(const Case& question, const Topology& topology) {
  const int most = static_cast<int>(question.workload->state_rows());
  const int start = blocks_by_model(question, topology, most);
  int best = start;
  double least = 0;
  const auto steps_of = [&](int blocks) {
    return static_cast<double>(schedules_of(question, blocks).build(question.ranks / 2).steps().size());
  };
  // Away from the model's number in steps of about 1.4, in the direction that helps.
  for (const double factor : {1.41, 1 / 1.41}) {
    for (double blocks = start; std::round(blocks) >= 1 && std::round(blocks) <= most; blocks *= factor) {
      const int candidate = static_cast<int>(std::round(blocks));
      if (steps_of(candidate) * question.ranks > searchable_steps) break;
      const double seconds = simulated_seconds(question, candidate, topology);
      if (least > 0 && candidate != best && seconds >= least) break;
      best = candidate;
      least = seconds;
    }
  }
  return best;
}

void predict(Record& record, const Topology& topology) {
  const ScheduleSource source = schedules_of(record.question, record.blocks);
  if (!refuses_to_simulate(source, topology).empty()) return;
  record.predicted_seconds = simulate(source, topology).seconds;
  record.extrapolated = extrapolates(record.question, topology);
}

std::string extrapolates(const Case& question, const Topology& topology) {
  const Calibration& calibration = topology.calibration;
  if (calibration.most_ranks == 0) return {};
  const std::int64_t bytes = question.workload->state_bytes();
  if (question.ranks > calibration.most_ranks)
    return fmt::format("{} ranks, {} were measured", question.ranks, calibration.most_ranks);
  if (bytes < calibration.least_bytes || bytes > calibration.most_bytes)
    return fmt::format("messages of {} B, {} to {} were measured", bytes, calibration.least_bytes,
                       calibration.most_bytes);
  if (question.ranks > topology.ranks_a_node) return "between nodes, where nothing was measured";
  return {};
}

}  // namespace baton
