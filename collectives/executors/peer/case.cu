// SPDX-License-Identifier: Apache-2.0
// Preparing a case.
#include <algorithm>
#include <utility>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/steps.cuh"
#include "collectives/executors/peer/case.cuh"
#include "collectives/executors/peer/compiler/plan.hpp"
#include "collectives/executors/peer/compiler/program.hpp"

namespace baton {
namespace {

unsigned multiprocessors() {
  int gpu = 0, count = 0;
  cuda(cudaGetDevice(&gpu));
  cuda(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, gpu));
  return static_cast<unsigned>(count);
}

/// An exchange is as slow as its smallest kernel: where one rank's has nothing beside it, and something may wait for it,
/// those of the others get all multiprocessors too, before work that would take them. Ranks that have unlike numbers of
/// exchange operations go by their own. True if there is work beside some. Collective.
bool agree_on_work_beside(PeerProgram& program, const CudaRanks& ranks) {
  std::vector<int> exchanges;
  for (std::size_t i = 0; i < program.operations.size(); ++i)
    if (program.operations[i].compute < 0) exchanges.push_back(static_cast<int>(i));
  const auto counts = ranks.gather(exchanges.size());
  const bool alike =
      std::all_of(counts.begin(), counts.end(), [&](std::size_t count) { return count == counts[0]; });
  bool any = false;
  for (int exchange : exchanges) {
    const bool own = program.operations[exchange].is_beside_work;
    const bool all = alike ? ranks.all(own) : own;
    if (own && !all) hold_back_work(program, exchange);
    any = any || all;
  }
  return ranks.any(any);
}

}  // namespace

const PeerNative* only_peer_native(const Schedule& schedule) {
  const auto& steps = schedule.steps();
  if (steps.size() != 1 || steps[0].verb != Verb::native) return nullptr;
  return find_peer_native(schedule.natives()[steps[0].body].name);
}

Refusal PeerCase::unsupported(std::span<const Schedule> schedules, PeerWire wire, PeerTransport transport) {
  if (only_peer_native(schedules[0]) != nullptr)
    return transport == PeerTransport::fenced ? "hand-tuned kernels have no fenced form" : "";
  for (const Schedule& schedule : schedules) {
    const Refusal reason = lacks_device_body(schedule);
    if (!reason.empty()) return reason;
  }
  return unsupported_by_peer(schedules, wire == PeerWire::bf16);
}

PeerCase::PeerCase(const CudaRanks& ranks, PeerExchange& exchange, std::span<const Schedule> schedules,
                   PeerWire wire, PeerTransport transport, unsigned beside_work_ctas)
    : exchange_(exchange), schedule_(schedules[ranks.rank()]), memory_(schedule_), wire_(wire) {
  native_ = only_peer_native(schedule_);
  if (native_ == nullptr)
    make_streams(ranks, schedules, transport, beside_work_ctas);
  else
    make_native(schedules);
}

void PeerCase::make_streams(const CudaRanks& ranks, std::span<const Schedule> schedules,
                            PeerTransport transport, unsigned beside_work_ctas) {
  const PeerProgramOptions options{packet_elements(wire_), transport == PeerTransport::packets};
  PeerProgram program = compile_peer_program(schedules, ranks.rank(), options);
  exchanges_beside_work_ = agree_on_work_beside(program, ranks);
  std::int64_t width = 0;
  for (std::int64_t packets : ranks.gather(program.width())) width = std::max(width, packets);
  const unsigned beside = std::min(beside_work_ctas, multiprocessors());
  // Flags are one a block: all kernels have as many.
  const bool is_fenced = transport == PeerTransport::fenced;
  const unsigned alone = is_fenced && exchanges_beside_work_ ? beside : multiprocessors();
  exchange_.reset(program.inbox_packets, program.messages, alone);
  const auto launch = [&](unsigned ctas) {
    return PeerLaunch{wire_, transport, ctas, peer_threads(width, ctas)};
  };
  streams_ = std::make_unique<PeerStreams>(
      schedule_, std::move(program),
      PeerPlace{memory_, exchange_.route(), exchange_.heap().all(), exchange_.layout()},
      PeerLaunches{launch(alone), launch(beside)});
}

void PeerCase::make_native(std::span<const Schedule> schedules) {
  operands_ = memory_.operands(schedule_.steps()[0]);
  std::int64_t packets = 0;
  for (const Schedule& schedule : schedules)
    packets =
        std::max(packets, native_->packets(schedule.steps()[0], schedule.ranks(), packet_elements(wire_)));
  exchange_.reset(packets, 0, native_->ctas(multiprocessors()));
  for (std::byte* heap : exchange_.heap().all()) inboxes_.push_back(heap + exchange_.layout().inbox);
}

std::vector<StepTime> PeerCase::step_times(const Stopwatch& marks) const {
  return streams_ ? streams_->step_times(marks) : std::vector<StepTime>{};
}

void PeerCase::enqueue(cudaStream_t stream, Stopwatch* marks) const {
  if (streams_) return streams_->enqueue(stream, marks);
  const NativeCall& call = schedule_.natives()[0];
  const PeerRoute& route = exchange_.route();
  native_->body({.stream = stream,
                 .route = route,
                 .inboxes = inboxes_,
                 .wire = wire_,
                 .place = call.reversed ? route.ranks - 1 - route.rank : route.rank,
                 .reversed = call.reversed,
                 .blocks = call.blocks,
                 .operands = operands_});
}

}  // namespace baton
