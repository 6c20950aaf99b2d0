// SPDX-License-Identifier: Apache-2.0
// Cases that run on an executor, each with the time that the simulator predicts for it if there is
// a topology.
#include "harness/runners/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/cases/matrices.hpp"
#include "harness/cases/memory.hpp"
#include "harness/cases/verify.hpp"
#include "harness/machine/placement.hpp"
#include "harness/measure/alpha_beta.hpp"
#include "harness/measure/prediction.hpp"
#include "harness/measure/samples.hpp"
#include "harness/options/options.hpp"
#include "harness/runners/calibrator.hpp"
#include "harness/runners/link_check.hpp"
#include "harness/runners/link_lines.hpp"
#include "harness/runners/runner.hpp"

namespace baton {
namespace {

/// Gathers the times of all processes, on each of them. Processes have different numbers of steps,
/// so that rows are padded.
std::vector<StepTime> gather(const std::vector<StepTime>& mine, const Team& team) {
  constexpr double filler = -1;
  const auto most = static_cast<std::size_t>(team.max(static_cast<double>(mine.size())));
  std::vector<double> row;
  for (const StepTime& time : mine)
    for (double value : {double(time.rank), double(time.step), time.start_seconds, time.finish_seconds})
      row.push_back(value);
  row.resize(4 * most, filler);
  std::vector<StepTime> all;
  for (const auto& values : team.gather(row))
    for (std::size_t i = 0; i < values.size() && values[i] != filler; i += 4)
      all.push_back(
          {static_cast<int>(values[i]), static_cast<int>(values[i + 1]), values[i + 2], values[i + 3]});
  return all;
}

/// True if some case of the executor called `executor` has affine maps.
bool has_affine_maps(const std::vector<Case>& cases, const std::string& executor) {
  return std::any_of(cases.begin(), cases.end(), [&](const Case& c) {
    return c.backend->name == executor && c.workload->map() == MapKind::affine;
  });
}

class MeasuredRunner : public CaseRunner {
 public:
  MeasuredRunner(const Options& options, const std::optional<Topology>& topology, const std::string& name,
                 int ranks, Team team)
      : CaseRunner(std::move(team)), options_(options), name_(name), ranks_(ranks) {
    if (!this->team().is_member()) return;
    // A tenth of the least memory of a host, over all processes.
    const double least = -this->team().max(-free_memory(this->team().size()).bytes);
    oracles_.emplace(this->team(), 0.1 * least / this->team().size());
    load_.emplace(this->team());
    executor_ = find_executor(name).make(ranks);
    placement_ = placement_of(this->team(), ranks);
    alpha_beta_ = measure_alpha_beta(*executor_, this->team(), placement_);
    if (has_affine_maps(options.cases, name))
      alpha_beta_.product_flops_per_second = measure_products(*executor_, this->team(), ranks, 1);
    link_check_.emplace(*executor_, this->team(), placement_, ranks, alpha_beta_);
    topology_ = topology;
    if (Calibrator::is_asked(options, ranks))
      calibrator_.emplace(options, *executor_, this->team(), placement_, name, topology);
    if (executor_->device() == nullptr)
      start_skew_ = measure_start_skew(*executor_, this->team(), placement_);
    transport_ = transport_of(name, *executor_, this->team(), placement_);
    hosts_ = hosts_of(*executor_, this->team(), placement_, start_skew_);
  }

  std::string description() const override;
  Prepared prepare(const Case& asked) override;
  TracedRound trace(const Prepared& prepared) override;

 private:
  void verify(Prepared& prepared) override;
  void time(Prepared& prepared) override;
  void build(Prepared& prepared);
  void add_facts(Result& result) const;
  void add_prediction(Prepared& prepared);
  Comparison checked_round(const Prepared& prepared, std::uint64_t seed);
  int blocks_of(const Case& bench_case) const;
  Refusal too_large(const Case& bench_case, int blocks);
  Refusal refusal_of(const Prepared& prepared) const;
  Refusal unsupported_cadence(Cadence cadence) const;
  /// The topology for predictions of a case, or null. A file's describes an f32 wire.
  const Topology* machine_of(const Prepared& prepared) const;

  const Options& options_;
  std::string name_;
  int ranks_;
  std::unique_ptr<Executor> executor_;
  std::optional<Oracles> oracles_;
  std::optional<HostLoad> load_;
  Placement placement_{std::vector<std::uint64_t>{}};
  double held_bytes_ = 0;  // of the last case's buffers on this host
  /// The link as it was measured at the start. It stays so, so that bounds and numbers of blocks do
  /// not depend on which cases ran before.
  AlphaBeta alpha_beta_;
  std::string transport_;
  std::optional<LinkCheck> link_check_;
  std::optional<HostsOfRanks> hosts_;
  std::optional<Topology> topology_;  // of a file
  std::optional<Calibrator> calibrator_;
  // Unknown on devices, whose start the host does not see.
  StartSkew start_skew_{.seconds = std::numeric_limits<double>::quiet_NaN()};
};

std::string MeasuredRunner::description() const {
  return link_lines(name_, ranks_, executor_->device(), {alpha_beta_, start_skew_, hosts_}) + call_line();
}

Refusal MeasuredRunner::unsupported_cadence(Cadence cadence) const {
  if (cadence != Cadence::graph) return {};
  const Device* device = executor_->device();
  return device == nullptr ? name_ + " records no graphs" : device->replay_unsupported();
}

int MeasuredRunner::blocks_of(const Case& bench_case) const {
  if (bench_case.blocks != auto_blocks) return possible_blocks(bench_case, bench_case.blocks);
  const Workload& workload = *bench_case.workload;
  return alpha_beta_.best_blocks(bench_case.ranks, workload.state_bytes(), workload.state_rows());
}

/// Refuses schedules and buffers that do not fit in the memory of a host, before they are made.
/// Every process has the schedules of all ranks. Executors look after the memory of devices.
Refusal MeasuredRunner::too_large(const Case& bench_case, int blocks) {
  const Extent extent = extent_of(bench_case, blocks);
  const auto here = static_cast<double>(placement_.members(placement_.host_of(team().rank())).size());
  const int processes = team().size() > 1 ? static_cast<int>(here) : 1;
  const double buffers = executor_->device() == nullptr ? extent.buffer_bytes * here / ranks_ : 0;
  const double needed = extent.schedule_bytes(processes) + buffers;
  const std::string reason = team().first(lacks_memory(needed, processes, held_bytes_).reason());
  if (reason.empty()) held_bytes_ = buffers;
  return reason;
}

Refusal MeasuredRunner::refusal_of(const Prepared& prepared) const {
  Refusal refusal = unsupported_cadence(prepared.bench_case.cadence);
  if (!refusal) refusal = executor_->unsupported(prepared.schedules);
  return team().first(refusal.reason());
}

const Topology* MeasuredRunner::machine_of(const Prepared& prepared) const {
  if (calibrator_) return &calibrator_->topology();
  const bool fits = prepared.bench_case.ranks_per_gpu == 1 && prepared.traffic.wire == Dtype::f32;
  return topology_ && fits ? &*topology_ : nullptr;
}

/// Sets what the links and the hosts of this launch are.
void MeasuredRunner::add_facts(Result& result) const {
  Result::Json facts;
  if (const Device* device = executor_->device())
    for (const auto& [name, text] : device->facts()) facts[name] = text;
  result.set("device", std::move(facts));
  result.set("transport", transport_);
  result.set("start_skew_seconds",
             std::isfinite(start_skew_.seconds) ? std::optional(start_skew_.seconds) : std::nullopt);
  if (hosts_) add_hosts(result, *hosts_, alpha_beta_);
}

Prepared MeasuredRunner::prepare(const Case& asked) {
  Prepared prepared;
  Case& bench_case = prepared.bench_case = asked;
  if (asked.ranks_per_node == 0) bench_case.ranks_per_node = placement_.ranks_per_node();
  prepared.traffic.link = alpha_beta_;
  executor_->use_threads(bench_case.threads_per_rank);
  build(prepared);
  Result& result = prepared.result;
  add_case(result, asked, options_.warmup, options_.rounds);
  result.set("ranks_per_node", bench_case.ranks_per_node);
  result.set("blocks", prepared.blocks);
  result.set("implementation", implementation_of(prepared.schedules));
  add_facts(result);
  if (!prepared.refusal) add_prediction(prepared);
  return prepared;
}

/// Builds and counts the schedules, or finds out why the case cannot run.
void MeasuredRunner::build(Prepared& prepared) {
  const Case& bench_case = prepared.bench_case;
  prepared.refusal = bench_case.workload->unsupported(bench_case.ranks);
  if (prepared.refusal) return;
  prepared.blocks = blocks_of(bench_case);
  prepared.refusal = too_large(bench_case, prepared.blocks);
  if (prepared.refusal) return;
  prepared.schedules = bench_case.workload->build(bench_case.split(prepared.blocks));
  prepared.is_native = implementation_of(prepared.schedules) != "schedule";
  CaseTraffic& traffic = prepared.traffic;
  traffic.wire = executor_->wire_dtype();
  traffic.cost = cost_of(bench_case, prepared.blocks, prepared.schedules);
  traffic.matrices = matrix_cost_of(bench_case, prepared.blocks);
  // A native may have memory of its own.
  if (!prepared.is_native) traffic.footprint = largest_footprint(prepared.schedules);
  std::vector<double> flops;
  for (const Schedule& schedule : prepared.schedules) flops.push_back(traffic_of(schedule).flops);
  traffic.balance = balance(flops);
  const auto on_wire = [&](std::int64_t bytes) { return bytes * bytes_of(traffic.wire) / element_bytes; };
  if (traffic.cost) traffic.cost->sent_bytes = on_wire(traffic.cost->sent_bytes);
  if (traffic.matrices) traffic.matrices->sent_bytes = on_wire(traffic.matrices->sent_bytes);
  prepared.refusal = refusal_of(prepared);
}

void MeasuredRunner::add_prediction(Prepared& prepared) {
  if (calibrator_) calibrator_->add_kernels(prepared.bench_case, prepared.schedules);
  const Topology* machine = machine_of(prepared);
  if (machine == nullptr) return;
  const auto prediction = predict(prepared.bench_case, prepared.blocks, *machine);
  if (!prediction) return;
  prepared.result.set("topology", prediction->topology);
  prepared.result.set("predicted_seconds", prediction->seconds);
  prepared.result.set("extrapolated", prediction->extrapolated);
}

/// Runs one untimed round of the case over the inputs of `seed`, in its cadence, and compares it.
Comparison MeasuredRunner::checked_round(const Prepared& prepared, std::uint64_t seed) {
  const Case& bench_case = prepared.bench_case;
  bench_case.workload->load(*executor_, prepared.schedules, seed, *oracles_);
  run_untimed(*executor_, bench_case.cadence);
  return bench_case.workload->compare(*executor_, prepared.schedules, seed, *oracles_);
}

void MeasuredRunner::verify(Prepared& prepared) {
  executor_->prepare(prepared.schedules);
  const double start = monotonic_seconds();
  Comparison found;
  for (int i = 0; i < options_.checks; ++i)
    found = sum(std::move(found), checked_round(prepared, options_.seed + i));
  add(prepared, found, monotonic_seconds() - start);
}

void MeasuredRunner::time(Prepared& prepared) {
  const Case& bench_case = prepared.bench_case;
  const Workload& workload = *bench_case.workload;
  // Inputs that no verified run has had, so that only the timed rounds can have computed their
  // results.
  const std::uint64_t seed = options_.seed + options_.checks;
  const double start = monotonic_seconds();
  workload.load(*executor_, prepared.schedules, seed, *oracles_);
  RoundWatch watch(*executor_, prepared.schedules, workload.varying_outputs());
  const double before_rounds = monotonic_seconds();
  load_->begin_case();
  const Samples samples =
      measure_rounds(*executor_, team(), bench_case.cadence, options_.warmup, options_.rounds, &watch);
  const double in_rounds = monotonic_seconds() - before_rounds - watch.seconds();
  add_conditions(prepared.result, load_->conditions(team(), bench_case.threads_per_rank));
  Comparison found = sum(watch.found(), workload.compare(*executor_, prepared.schedules, seed, *oracles_));
  found = sum(std::move(found), checked_round(prepared, options_.seed));
  found = sum(std::move(found), link_check_->too_fast(prepared, samples, start_skew_.seconds, *load_));
  prepared.traffic.known_bound_seconds = link_check_->bound_over_hosts(prepared, alpha_beta_);
  const double timed_seconds = team().max(in_rounds);
  add(prepared, found, monotonic_seconds() - start - in_rounds);
  if (prepared.found.wrong > 0) return;
  add_times(prepared.result, bench_case, samples);
  prepared.result.set("timed_seconds", timed_seconds);
}

TracedRound MeasuredRunner::trace(const Prepared& prepared) {
  // Connections that were idle during the verification take a tenth of a millisecond to wake.
  for (int round = 0; round < options_.warmup; ++round) {
    executor_->synchronise();
    executor_->run();
  }
  executor_->synchronise();
  return {prepared.schedules, gather(executor_->run_traced(), team())};
}

}  // namespace

std::unique_ptr<CaseRunner> measured_runner(const Options& options, const std::optional<Topology>& topology,
                                            const std::string& executor, int ranks, Team team) {
  return std::make_unique<MeasuredRunner>(options, topology, executor, ranks, std::move(team));
}

}  // namespace baton
