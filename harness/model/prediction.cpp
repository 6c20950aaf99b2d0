// SPDX-License-Identifier: Apache-2.0
// Asking the simulator.
#include "harness/model/prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace baton {
namespace {

/// Steps that the search for the best number of blocks may simulate at a time, well under a second; and steps of the
/// number that it settles on, some seconds.
constexpr double searchable_steps = 1e6, affordable_steps = 2e7;

double steps_of(const Case& question, int blocks) {
  const Schedule middle = schedules_of(question, blocks).build(question.ranks / 2);
  return static_cast<double>(middle.steps().size()) * question.ranks;
}

/// The model's number of blocks for a chain over the slowest link: what a block costs beyond its bytes is the link's
/// overhead, for its latency passes while the next block is on its way.
int blocks_by_model(const Case& question, const Topology& topology, int most) {
  const bool one_node = question.ranks <= topology.ranks_a_node;
  const LinkModel& link = one_node ? topology.intra_node : topology.inter_node;
  const double state = static_cast<double>(question.workload->state_bytes());
  const double overhead = link.busy_seconds(0), rate = state / (link.busy_seconds(state) - overhead);
  if (overhead <= 0) return most;
  return Link{overhead, rate}.best_blocks(question.ranks, question.workload->state_bytes(), most);
}

/// Walks over numbers of blocks and remembers the fastest.
class BlockSearch {
 public:
  BlockSearch(const Case& question, const Topology& topology, int most)
      : question_(question), topology_(topology), most_(most) {}

  int best() const { return best_; }

  /// Whether so many are faster than all before. Numbers that take too long to simulate are not.
  bool improves(int blocks) {
    if (steps_of(question_, blocks) > searchable_steps) return false;
    const double seconds = simulate(schedules_of(question_, blocks), topology_).seconds;
    if (seconds >= least_) return false;
    best_ = blocks;
    least_ = seconds;
    return true;
  }

  /// Away from `blocks` in steps of `factor`, until `patience` of them on end have not helped.
  void walk(int blocks, double factor, int patience) {
    for (int misses = 0; misses < patience;) {
      const int next = static_cast<int>(std::round(blocks * factor));
      blocks = factor > 1 ? std::max(next, blocks + 1) : std::min(next, blocks - 1);
      if (blocks < 1 || blocks > most_) return;
      misses = improves(blocks) ? 0 : misses + 1;
    }
  }

 private:
  const Case& question_;
  const Topology& topology_;
  int most_;
  int best_ = 0;
  double least_ = std::numeric_limits<double>::infinity();
};

}  // namespace

ScheduleSource schedules_of(const Case& question, int blocks) {
  return {question.workload->name(), question.ranks, [&question, blocks](int rank) {
            return question.workload->build_rank(rank, question.split(blocks));
          }};
}

int best_blocks_on(const Case& question, const Topology& topology) {
  if (topology.streams) return 1;  // a pipeline of elements already
  const int most = static_cast<int>(question.workload->state_rows());
  const int model = blocks_by_model(question, topology, most);
  const auto halved_to = [&](double steps) {
    int blocks = model;
    while (blocks > 1 && steps_of(question, blocks) > steps) blocks /= 2;
    return blocks;
  };
  const int start = halved_to(searchable_steps), affordable = halved_to(affordable_steps);
  BlockSearch search(question, topology, most);
  search.improves(start);
  for (const double factor : {1.41, 1 / 1.41}) search.walk(start, factor, 2);
  // Where the search ended at what it could try, more might help, and the model has the last word.
  if (search.best() == 0 || (search.best() >= start && affordable > start)) return affordable;
  for (const double factor : {1.19, 1 / 1.19}) search.walk(search.best(), factor, 1);
  return search.best();
}

void predict(Record& record, const Topology& topology) {
  const ScheduleSource source = schedules_of(record.question, record.blocks);
  if (!unsupported_by_simulator(source, topology).empty()) return;
  const Simulation simulation = simulate(source, topology);
  record.predicted_seconds = simulation.seconds;
  record.topology = topology.name;
  record.extrapolated = extrapolates(source, simulation, topology);
}

std::string extrapolates(const ScheduleSource& source, const Simulation& simulation,
                         const Topology& topology) {
  const Calibration& calibration = topology.calibration;
  const int ranks = static_cast<int>(simulation.rank_seconds.size());
  if (calibration.most_ranks == 0) return {};
  const Schedule middle = source.build(ranks / 2);
  for (const Kernel& kernel : middle.kernels())
    if (!topology.device.kernels.contains(kernel.name))
      return "the kernel " + kernel.name + " was not measured";
  if (simulation.messages == 0) return {};
  if (ranks > calibration.most_ranks)
    return fmt::format("{} ranks, {} were measured", ranks, calibration.most_ranks);
  if (simulation.least_message_bytes < calibration.least_bytes ||
      simulation.most_message_bytes > calibration.most_bytes)
    return fmt::format("messages of {} to {} B, {} to {} were measured", simulation.least_message_bytes,
                       simulation.most_message_bytes, calibration.least_bytes, calibration.most_bytes);
  if (ranks > topology.ranks_a_node) return "between nodes, where nothing was measured";
  return {};
}

}  // namespace baton
