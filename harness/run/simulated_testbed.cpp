// SPDX-License-Identifier: Apache-2.0
// Cases in virtual time: the very schedules, on the machine of a topology. The text is verified on real data first, at a
// size and number of ranks that one process runs in no time; one round is all, for every round would be the same.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "collectives/schedule/check.hpp"
#include "harness/model/prediction.hpp"
#include "harness/run/testbed.hpp"
#include "harness/run/traffic.hpp"

namespace baton {
namespace {

/// An alpha and a beta that no message on `c` beats, alone or in a row of them, whatever its size. A curve is not made of
/// these two numbers: beta is the best rate of a port anywhere on it, and alpha the least that any size takes beside that.
Link limit_of(const LinkModel& c) {
  if (c.measured.empty() && c.measured_idle.empty()) return {c.message_seconds(0), c.bytes_a_second};
  std::vector<double> sizes{1 << 30};
  for (const Curve* curve : {&c.measured, &c.measured_idle})
    for (const Curve::Point& point : curve->points)
      if (point.bytes > 0) sizes.push_back(point.bytes);
  Link limit{c.message_seconds(0), 1};
  for (const double bytes : sizes)
    if (const double busy = c.busy_seconds(bytes); busy > 0) limit.beta = std::max(limit.beta, bytes / busy);
  for (const double bytes : sizes) {
    const double beside = std::min(c.busy_seconds(0), c.busy_seconds(bytes) - bytes / limit.beta);
    limit.alpha_seconds = std::min(limit.alpha_seconds, c.latency(bytes) + std::max(beside, 0.0));
  }
  return limit;
}

/// The question on the nodes that it runs on.
Case placed(const Record& record) {
  Case question = record.question;
  question.ranks_a_node = record.ranks_a_node;
  return question;
}

class SimulatedTestbed : public Testbed {
 public:
  SimulatedTestbed(const Options& options, int ranks, Team team)
      : Testbed(std::move(team)), options_(options), topology_(*options.topology), ranks_(ranks) {}

  std::string description() const override {
    const Link link = this->link();
    const std::string& stands_on = topology_.calibration.stands_on;
    return fmt::format("# simulator, {} ranks on {}: alpha {:.2f} us, beta {:.2f} GB/s; {}\n", ranks_,
                       topology_.name, link.alpha_seconds * 1e6, link.beta * 1e-9,
                       stands_on.empty() ? "calibrated on nothing: the file names the source of each figure"
                                         : fmt::format("calibrated: {}, residual {:.0f} %", stands_on,
                                                       100 * topology_.calibration.residual));
  }
  double start_skew_seconds() const override { return 0; }

  std::string prepare(Record& record) override;
  void verify(Record& record) override;
  void time(Record& record, benchmark::State& state) override;
  std::vector<StepTime> run_traced(const Record& record) override;

 private:
  /// The best that any two neighbours have: what a bound may stand on.
  Link link() const;

  const Options& options_;
  const Topology& topology_;
  int ranks_;
};

Link SimulatedTestbed::link() const {
  Link best = limit_of(topology_.intra_node);
  if (ranks_ <= topology_.ranks_a_node) return best;
  const auto improve = [&best](const LinkModel& c) {
    const Link other = limit_of(c);
    best = {std::min(best.alpha_seconds, other.alpha_seconds), std::max(best.beta, other.beta)};
  };
  improve(topology_.inter_node);
  if (topology_.spine) improve(*topology_.spine);
  return best;
}

std::string SimulatedTestbed::prepare(Record& record) {
  record.link = link();
  record.topology = topology_.name;
  record.warmup = 0;
  record.rounds = 1;
  if (record.ranks_a_node == 0 && ranks_ > topology_.ranks_a_node)
    record.ranks_a_node = topology_.ranks_a_node;
  const Case question = placed(record);
  if (question.cadence != Cadence::isolated) return "a simulated round is isolated";
  Refusal refusal = question.workload->unsupported(ranks_);
  if (!refusal) refusal = unsupported_by_simulator(schedules_of(question, 1), topology_);
  if (refusal) return refusal.reason();
  record.blocks = question.blocks == auto_blocks && question.workload->cuts_blocks()
                      ? best_blocks_on(question, topology_)
                      : possible_blocks(question, question.blocks);
  return unsupported_by_simulator(schedules_of(question, record.blocks), topology_).reason();
}

void SimulatedTestbed::verify(Record& record) {
  constexpr int most_ranks = 16, most_blocks = 64;
  Case small = placed(record);
  small.workload = small.workload->reduced();
  small.ranks = std::min(ranks_, most_ranks);
  if (small.ranks_a_node > 0) small.ranks_a_node = std::min(small.ranks_a_node, most_ranks / 4);
  small.executor = "local";
  small.blocks = std::min(record.blocks, most_blocks);
  const Split split = small.split(small.blocks);
  const auto local = find_executor(small.executor).make(small.ranks);
  auto schedules = small.workload->build(split);
  check(small.workload->name(), schedules);
  local->prepare(std::move(schedules));
  for (int i = 0; i < options_.checks; ++i)
    note(record, small.workload->verify(*local, split, options_.seed + i));
  record.stand_in = small;
}

void SimulatedTestbed::time(Record& record, benchmark::State& state) {
  const Case question = placed(record);
  const ScheduleSource source = schedules_of(question, record.blocks);
  const Simulation simulation = simulate(source, topology_);
  for (auto _ : state) state.SetIterationTime(simulation.seconds);
  record.samples.seconds = {simulation.seconds};
  record.traffic = Claim{simulation.busiest_sent_bytes, simulation.hops};
  record.messages = simulation.messages;
  record.extrapolated = extrapolates(source, simulation, topology_);
  require_claim(question, record.blocks, *record.traffic);
}

std::vector<StepTime> SimulatedTestbed::run_traced(const Record& record) {
  const Case question = placed(record);
  return simulate(schedules_of(question, record.blocks), topology_, true).timeline;
}

}  // namespace

std::unique_ptr<Testbed> simulated_testbed(const Options& options, int ranks, Team team) {
  return std::make_unique<SimulatedTestbed>(options, ranks, std::move(team));
}

}  // namespace baton
