// SPDX-License-Identifier: Apache-2.0
// A simulated case is the same schedules on the machine of a topology. Its algorithm is verified on
// real data first, at a size that one process runs in milliseconds. It has a single round, since
// all rounds would be equal.
#include "harness/runners/simulated.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "collectives/schedule/check.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/cases/matrices.hpp"
#include "harness/cases/verify.hpp"
#include "harness/measure/prediction.hpp"
#include "harness/options/options.hpp"
#include "harness/record/cells.hpp"
#include "harness/runners/runner.hpp"

namespace baton {
namespace {

AlphaBeta limit_of(const LinkModel& link) {
  const LinkLimit limit = link.limit();
  return {limit.alpha_seconds, limit.bytes_per_second};
}

std::string to_text(const AlphaBeta& limit) {
  return fmt::format("alpha {:.2f} us, beta {:.2f} GB/s", limit.alpha_seconds * 1e6, limit.beta * 1e-9);
}

class SimulatedRunner : public CaseRunner {
 public:
  SimulatedRunner(const Options& options, const Topology& topology, int ranks, Team team)
      : CaseRunner(std::move(team)), options_(options), topology_(topology), ranks_(ranks) {}

  std::string description() const override;
  Prepared prepare(const Case& bench_case) override;
  TracedRound trace(const Prepared& prepared) override;

 private:
  void verify(Prepared& prepared) override;
  void time(Prepared& prepared) override;
  void find_blocks(Prepared& prepared) const;
  /// The best latency and the best rate of the links that the ranks use.
  AlphaBeta alpha_beta() const;

  const Options& options_;
  const Topology& topology_;
  int ranks_;
};

std::string SimulatedRunner::description() const {
  const std::string& stands_on = topology_.calibration.stands_on;
  std::string links = to_text(limit_of(topology_.intra_node));
  if (ranks_ > topology_.ranks_per_node)
    links += fmt::format(" in a node of {}; {} between nodes", topology_.ranks_per_node,
                         to_text(limit_of(topology_.inter_node)));
  if (ranks_ > topology_.ranks_per_node && topology_.spine)
    links += fmt::format(" on a rail, {} else", to_text(limit_of(*topology_.spine)));
  return wrapped(
      fmt::format("# simulator, {} ranks on {}: {}; {}", ranks_, topology_.name, links,
                  stands_on.empty() ? "calibrated on nothing: the file names the source of each figure"
                                    : fmt::format("calibrated: {}, residual {:.0f} %", stands_on,
                                                  100 * topology_.calibration.residual)),
      "#   ");
}

AlphaBeta SimulatedRunner::alpha_beta() const {
  AlphaBeta best = limit_of(topology_.intra_node);
  if (ranks_ <= topology_.ranks_per_node) return best;
  const auto improve = [&best](const AlphaBeta& other) {
    best = {std::min(best.alpha_seconds, other.alpha_seconds), std::max(best.beta, other.beta)};
  };
  improve(limit_of(topology_.inter_node));
  if (topology_.spine) improve(limit_of(*topology_.spine));
  return best;
}

Prepared SimulatedRunner::prepare(const Case& bench_case) {
  Prepared prepared;
  prepared.bench_case = bench_case;
  Case& placed = prepared.bench_case;
  if (placed.ranks_per_node == 0 && ranks_ > topology_.ranks_per_node)
    placed.ranks_per_node = topology_.ranks_per_node;
  prepared.traffic.link = alpha_beta();
  const std::string native = placed.workload->native();
  prepared.is_native = !native.empty();
  find_blocks(prepared);
  Result& result = prepared.result;
  add_case(result, bench_case, 0, 1);
  result.set("ranks_per_node", placed.ranks_per_node);
  result.set("topology", topology_.name);
  result.set("stands_on", topology_.calibration.stands_on);
  result.set("blocks", prepared.blocks);
  if (prepared.is_native) result.set("implementation", native);
  return prepared;
}

/// Chooses the number of blocks, or finds out why the case cannot run.
void SimulatedRunner::find_blocks(Prepared& prepared) const {
  const Case& placed = prepared.bench_case;
  if (placed.cadence != Cadence::isolated) prepared.refusal = "a simulated round is isolated";
  if (!prepared.refusal) prepared.refusal = placed.workload->unsupported(ranks_);
  if (!prepared.refusal) prepared.refusal = unsupported_by_simulator(schedules_of(placed, 1), topology_);
  if (prepared.refusal) return;
  prepared.blocks = placed.blocks == auto_blocks && placed.workload->cuts_blocks()
                        ? best_blocks_on(placed, topology_)
                        : possible_blocks(placed, placed.blocks);
  const ScheduleSource source = schedules_of(placed, prepared.blocks);
  prepared.refusal = unsupported_by_simulator(source, topology_);
  if (!prepared.refusal) prepared.traffic.matrices = matrix_cost_of(placed, prepared.blocks);
  if (!prepared.refusal && ranks_ == 1 && simulate(source, topology_).seconds == 0)
    prepared.refusal = "a rank alone sends nothing, and its round takes no time on this machine";
}

/// A library's call runs on its own machine alone, so nothing is compared and the row counts no
/// element.
void SimulatedRunner::verify(Prepared& prepared) {
  if (prepared.is_native) return;
  constexpr int most_ranks = 16, most_blocks = 64;
  Case small = prepared.bench_case;
  small.ranks = std::min(ranks_, most_ranks);
  small.workload = small.workload->reduced(small.ranks);
  if (small.ranks_per_node > 0) small.ranks_per_node = std::min(small.ranks_per_node, most_ranks / 4);
  small.backend = &find_backend("local");
  small.blocks = std::min(prepared.blocks, most_blocks);
  const auto local = find_executor(small.backend->name).make(small.ranks);
  const auto schedules = small.workload->build(small.split(small.blocks));
  check(small.workload->name(), schedules);
  local->prepare(schedules);
  const double start = monotonic_seconds();
  Oracles oracles(team());
  Comparison found;
  for (int i = 0; i < options_.checks; ++i)
    found = sum(std::move(found), small.workload->verify(*local, schedules, options_.seed + i, oracles));
  add(prepared, found, monotonic_seconds() - start);
  prepared.verified_case = small;
}

void SimulatedRunner::time(Prepared& prepared) {
  const Case& bench_case = prepared.bench_case;
  const ScheduleSource source = schedules_of(bench_case, prepared.blocks);
  const Simulation simulation = simulate(source, topology_);
  if (simulation.seconds == 0)
    throw UsageError(
        fmt::format("--topology: a round of {} takes no time on {}", bench_case.name(), topology_.name));
  CaseTraffic& traffic = prepared.traffic;
  if (!prepared.is_native) traffic.cost = Cost{simulation.busiest_sent_bytes, simulation.hops};
  traffic.footprint = simulation.footprint;
  traffic.balance = balance(simulation.rank_flops);
  traffic.messages = simulation.messages;
  traffic.known_bound_seconds = simulation.bound_seconds;
  if (traffic.cost) require_claim(bench_case, prepared.blocks, *traffic.cost);
  add_times(prepared.result, bench_case, {.seconds = {simulation.seconds}});
  prepared.result.set("timed_seconds", 0.0);
  prepared.result.set("extrapolated", extrapolates(source, simulation, topology_));
}

TracedRound SimulatedRunner::trace(const Prepared& prepared) {
  const Case& bench_case = prepared.bench_case;
  return {bench_case.workload->build(bench_case.split(prepared.blocks)),
          simulate(schedules_of(bench_case, prepared.blocks), topology_, true).timeline};
}

}  // namespace

std::unique_ptr<CaseRunner> simulated_runner(const Options& options, const Topology& topology, int ranks,
                                             Team team) {
  return std::make_unique<SimulatedRunner>(options, topology, ranks, std::move(team));
}

}  // namespace baton
