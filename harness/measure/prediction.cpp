// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "harness/cases/case.hpp"
#include "harness/machine/placement.hpp"
#include "harness/measure/alpha_beta.hpp"

namespace baton {
namespace {

/// The most steps of one simulation: during the search for the best number of blocks (under half a
/// second), and with the number that is finally used (a few seconds).
constexpr double searchable_steps = 1e6, affordable_steps = 1e7;

/// The least part of a round's time that more blocks must save.
constexpr double least_gain = 1e-3;

Schedule middle_of(const Case& bench_case, int blocks) {
  return schedules_of(bench_case, blocks).build(bench_case.ranks / 2);
}

double steps_of(const Case& bench_case, const Schedule& middle) {
  return static_cast<double>(middle.steps().size()) * bench_case.ranks;
}

bool are_equal(const std::vector<Step>& one, const std::vector<Step>& other) {
  const auto facts = [](const Step& step) {
    return std::tie(step.verb, step.peer, step.body, step.writes, step.reads);
  };
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [&](const Step& a, const Step& b) { return facts(a) == facts(b); });
}

/// The alpha-beta model's number of blocks for a chain over the slowest link. A block costs the
/// link's overhead beside its bytes; the link's latency overlaps with the next block. Where the
/// overhead is 0, P - 2 of P - 2 + K blocks fill the chain, which more blocks make shorter by the
/// least gain at most.
int blocks_by_model(const Case& bench_case, const Topology& topology, int most) {
  const bool one_node = bench_case.ranks <= topology.ranks_per_node;
  const LinkModel& link = one_node ? topology.intra_node : topology.inter_node;
  const double state = static_cast<double>(bench_case.workload->state_bytes());
  const double overhead = link.busy_seconds(0), rate = state / (link.busy_seconds(state) - overhead);
  if (overhead <= 0)
    return static_cast<int>(std::clamp<double>((bench_case.ranks - 2) / least_gain, 1, most));
  return AlphaBeta{overhead, rate}.best_blocks(bench_case.ranks, bench_case.workload->state_bytes(), most);
}

/// Tries numbers of blocks and remembers the fastest.
class BlockSearch {
 public:
  BlockSearch(const Case& bench_case, const Topology& topology, int most)
      : case_(bench_case), topology_(topology), most_(most) {}

  int best() const { return best_; }

  /// Simulates so many blocks; true if they gain on the best number so far. Numbers that take
  /// too long to simulate are not tried, nor those whose rank in the middle has the steps of an
  /// earlier number: slices that many ranks own are cut alike by many numbers.
  bool improves(int blocks) {
    const Schedule middle = middle_of(case_, blocks);
    const std::vector<Step>& steps = middle.steps();
    if (steps_of(case_, middle) > searchable_steps) return false;
    if (std::any_of(tried_.begin(), tried_.end(),
                    [&](const std::vector<Step>& earlier) { return are_equal(earlier, steps); }))
      return false;
    tried_.push_back(steps);
    const double seconds = simulate(schedules_of(case_, blocks), topology_).seconds;
    if (seconds >= least_ * (blocks < best_ ? 1 : 1 - least_gain)) return false;
    best_ = blocks;
    least_ = seconds;
    return true;
  }

  /// Tries numbers from `blocks` on in steps of `factor`, until `most_misses` in a row have not
  /// improved.
  void walk(int blocks, double factor, int most_misses) {
    for (int misses = 0; misses < most_misses;) {
      const int next = static_cast<int>(std::round(blocks * factor));
      blocks = factor > 1 ? std::max(next, blocks + 1) : std::min(next, blocks - 1);
      if (blocks < 1 || blocks > most_) return;
      misses = improves(blocks) ? 0 : misses + 1;
    }
  }

 private:
  const Case& case_;
  const Topology& topology_;
  int most_;
  std::vector<std::vector<Step>> tried_;  // of the rank in the middle
  int best_ = 0;
  double least_ = std::numeric_limits<double>::infinity();
};

bool has_products(const Schedule& schedule) {
  return std::any_of(schedule.steps().begin(), schedule.steps().end(),
                     [](const Step& step) { return step.combine.form.kind == MapKind::affine; });
}

}  // namespace

ScheduleSource schedules_of(const Case& bench_case, int blocks) {
  return {bench_case.workload->name(), bench_case.ranks, [&bench_case, blocks](int rank) {
            return bench_case.workload->build_rank(rank, bench_case.split(blocks));
          }};
}

int best_blocks_on(const Case& bench_case, const Topology& topology) {
  if (topology.streams) return 1;  // such a machine pipelines elements
  const int most = static_cast<int>(bench_case.workload->state_rows());
  const int model = blocks_by_model(bench_case, topology, most);
  const auto halved_to = [&](double steps) {
    int blocks = model;
    while (blocks > 1 && steps_of(bench_case, middle_of(bench_case, blocks)) > steps) blocks /= 2;
    return blocks;
  };
  const int start = halved_to(searchable_steps), affordable = halved_to(affordable_steps);
  BlockSearch search(bench_case, topology, most);
  search.improves(start);
  for (const double factor : {1.41, 1 / 1.41}) search.walk(start, factor, 2);
  // If the best is the largest number that could be tried, more blocks might help: the model
  // decides.
  if (search.best() == 0 || (search.best() >= start && affordable > start)) return affordable;
  for (const double factor : {1.19, 1 / 1.19}) search.walk(search.best(), factor, 1);
  return search.best();
}

std::optional<double> bound_over_hosts(const Case& bench_case, int blocks, const AlphaBeta& model,
                                       const Placement& placement) {
  if (placement.ranks_per_node() == 0) return std::nullopt;
  Topology links;  // without costs but those of messages
  links.nodes = placement.hosts();
  links.ranks_per_node = placement.ranks_per_node();
  links.intra_node = {.latency_seconds = model.alpha_seconds, .bytes_per_second = model.beta};
  links.inter_node = {.latency_seconds = model.between_alpha_seconds, .bytes_per_second = model.between_beta};
  constexpr double free = std::numeric_limits<double>::infinity();
  const Rate step{.flops_per_second = free, .bytes_per_second = free};
  links.device = {.kernel = step, .copy = step, .combine = step, .kernels = {}};
  if (model.product_flops_per_second > 0)
    links.device.kernels[affine_combine] = {.flops_per_second = model.product_flops_per_second,
                                            .bytes_per_second = free};
  const ScheduleSource source = schedules_of(bench_case, blocks);
  if (unsupported_by_simulator(source, links)) return std::nullopt;
  return model.floor_seconds + simulate(source, links).bound_seconds;
}

std::optional<Prediction> predict(const Case& bench_case, int blocks, const Topology& topology) {
  const ScheduleSource source = schedules_of(bench_case, blocks);
  if (unsupported_by_simulator(source, topology)) return std::nullopt;
  const Simulation simulation = simulate(source, topology);
  return Prediction{simulation.seconds, topology.name, extrapolates(source, simulation, topology)};
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
  if (has_products(middle) && !topology.device.kernels.contains(affine_combine))
    return "the products of affine maps were not measured";
  if (simulation.messages == 0) return {};
  if (calibration.most_ranks == 1) return "its links were not measured, but its kernels";
  if (ranks > calibration.most_ranks)
    return fmt::format("{} ranks, {} were measured", ranks, calibration.most_ranks);
  if (simulation.least_message_bytes < calibration.least_bytes ||
      simulation.most_message_bytes > calibration.most_bytes)
    return fmt::format("messages of {} to {} B, {} to {} were measured", simulation.least_message_bytes,
                       simulation.most_message_bytes, calibration.least_bytes, calibration.most_bytes);
  if (ranks > topology.ranks_per_node && calibration.most_nodes < 2)
    return "between nodes, where nothing was measured";
  return {};
}

}  // namespace baton
