// SPDX-License-Identifier: Apache-2.0
// Executors `peer`, `peer_fenced` and `peer_bf16`: one process a GPU of one host, each rank's schedule as one kernel that
// stores into the memory of the others.
//
// What a wire of bf16 rounds is what crosses a link; every rank computes and keeps f32.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "collectives/executors/cuda/executor.cuh"
#include "collectives/executors/cuda/gpu.cuh"
#include "collectives/executors/peer/case.cuh"
#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

/// Ranks that a bit mask of receivers has room for.
constexpr int most_ranks = 64;

class PeerExecutor : public CudaExecutor {
 public:
  PeerExecutor(int ranks, PeerWire wire, PeerTransport transport)
      : CudaExecutor(ranks),
        wire_(wire),
        transport_(transport),
        lacks_(ranks > most_ranks ? Refusal("has room for 64 ranks") : lacks_peer_access(this->ranks())) {
    if (!lacks_) exchange_ = std::make_unique<PeerExchange>(this->ranks());
  }

  Refusal unsupported(std::span<const Schedule> schedules) const override;
  void prepare(std::vector<Schedule> schedules) override;
  std::vector<StepTime> run_traced() override;
  double one_way_seconds(std::int64_t bytes, int from, int to) override;
  Dtype wire_dtype() const override { return wire_ == PeerWire::bf16 ? Dtype::bf16 : Dtype::f32; }
  bool streams_messages() const override { return transport_ == PeerTransport::packets; }
  std::vector<std::pair<std::string, std::string>> facts() const override;

 protected:
  void enqueue_round() override { case_->enqueue(main_stream()); }
  DeviceMemory& memory() override { return case_->memory(); }
  const DeviceMemory& memory() const override { return case_->memory(); }
  std::string fault() const override { return case_ ? case_->fault() : std::string{}; }
  std::size_t held_bytes(const Schedule&) const override { return case_ ? case_->memory().size() : 0; }

 private:
  void make_case(const std::vector<Schedule>& schedules, unsigned beside_work_ctas);
  void keep_fastest(std::size_t ways, const std::function<void(std::size_t)>& prepare_way);

  PeerWire wire_;
  PeerTransport transport_;
  Refusal lacks_;  // why there are no peers
  std::unique_ptr<PeerExchange> exchange_;
  std::unique_ptr<PeerCase> case_;
  Stopwatch trace_;
  std::optional<double> floor_;
};

Refusal PeerExecutor::unsupported(std::span<const Schedule> schedules) const {
  if (lacks_) return lacks_;
  const Refusal refusal = PeerCase::unsupported(schedules, wire_, transport_);
  return refusal ? refusal : lacks_memory(schedules);
}

void PeerExecutor::prepare(std::vector<Schedule> schedules) {
  const PeerNative* native = only_peer_native(schedules[0]);
  if (native != nullptr && native->candidates) {
    const auto candidates = native->candidates(schedules);
    return keep_fastest(candidates.size(), [&](std::size_t i) { prepare(candidates[i]); });
  }
  // Exchange kernels beside local work: few blocks leave it its multiprocessors, many are done sooner.
  constexpr std::array<unsigned, 3> ctas{4, 16, all_ctas};
  make_case(schedules, ctas[0]);
  if (case_->exchanges_beside_work())
    keep_fastest(ctas.size(), [&](std::size_t i) { make_case(schedules, ctas[i]); });
}

void PeerExecutor::make_case(const std::vector<Schedule>& schedules, unsigned beside_work_ctas) {
  forget_recording();
  case_.reset();  // its memory first: two cases need not fit at once
  case_ = std::make_unique<PeerCase>(ranks(), *exchange_, schedules, wire_, transport_, beside_work_ctas);
  warm_up();
}

/// Prepares `ways` ways of doing the same, one by one, and keeps the fastest, by the median of a few rounds over zeros, each
/// that of its slowest rank.
void PeerExecutor::keep_fastest(std::size_t ways, const std::function<void(std::size_t)>& prepare_way) {
  std::vector<double> medians;
  for (std::size_t way = 0; way < ways; ++way) {
    prepare_way(way);
    std::vector<double> seconds(21);
    for (double& round : seconds) {
      const auto all = ranks().gather(run());
      round = *std::max_element(all.begin(), all.end());
    }
    std::nth_element(seconds.begin(), seconds.begin() + 10, seconds.end());
    medians.push_back(seconds[10]);
  }
  const auto fastest = std::min_element(medians.begin(), medians.end()) - medians.begin();
  prepare_way(static_cast<std::size_t>(fastest));
}

std::vector<StepTime> PeerExecutor::run_traced() {
  time_from_start([this] { case_->enqueue(main_stream(), &trace_); });
  return case_->step_times(trace_);
}

/// A message from a common start to its arrival, what an empty round takes taken off. Forgets what was prepared.
double PeerExecutor::one_way_seconds(std::int64_t bytes, int from, int to) {
  if (lacks_) return 0;
  if (!floor_) floor_ = floor_seconds();
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < ranks().size(); ++rank) {
    Schedule& schedule = schedules.emplace_back(rank, ranks().size());
    const Slice message = schedule.scratch("message", (bytes + element_bytes - 1) / element_bytes);
    const Slice arrived = schedule.output("arrived", message.count, false);
    if (rank == from) schedule.send(to, message);
    if (rank == to) schedule.recv(arrived, from);
  }
  prepare(std::move(schedules));
  const double seconds = run() - *floor_;
  return ranks().rank() == to ? std::max(seconds, 0.0) : 0;
}

std::vector<std::pair<std::string, std::string>> PeerExecutor::facts() const {
  auto all = CudaExecutor::facts();
  all.emplace_back("peer_memory", exchange_ ? exchange_->heap().description() : lacks_.reason());
  return all;
}

RegisteredExecutor add(const char* name, const char* summary, PeerWire wire, PeerTransport transport) {
  return RegisteredExecutor{{
      .name = name,
      .summary = summary,
      .process_a_rank = true,
      .make = [=](int ranks) { return std::make_unique<PeerExecutor>(ranks, wire, transport); },
      .lacks = lacks_gpus,
      .tensors = Dtype::bf16,
  }};
}

const RegisteredExecutor packets = add("peer", "one kernel a round that stores into the other GPUs' memory",
                                       PeerWire::f32, PeerTransport::packets);
const RegisteredExecutor fenced = add("peer_fenced", "peer with fences and flags: slower, formally simple",
                                      PeerWire::f32, PeerTransport::fenced);
const RegisteredExecutor bf16 = add("peer_bf16", "peer with bf16 on the wire: half the bytes, rounded",
                                    PeerWire::bf16, PeerTransport::packets);

}  // namespace
}  // namespace baton
