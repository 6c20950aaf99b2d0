// SPDX-License-Identifier: Apache-2.0
// Preparing a case.
#include <algorithm>

#include "collectives/executors/cuda_error.cuh"
#include "collectives/executors/peer_case.cuh"
#include "collectives/executors/peer_program.hpp"

namespace baton {
namespace {

unsigned multiprocessors() {
  int gpu = 0, count = 0;
  cuda(cudaGetDevice(&gpu));
  cuda(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, gpu));
  return static_cast<unsigned>(count);
}

}  // namespace

const PeerNative* only_peer_native(const Schedule& schedule) {
  const auto& steps = schedule.steps();
  if (steps.size() != 1 || steps[0].verb != Verb::native) return nullptr;
  return find_peer_native(schedule.natives()[steps[0].body].name);
}

std::string PeerCase::refuses(std::span<const Schedule> schedules, PeerTransport transport) {
  if (only_peer_native(schedules[0]) == nullptr) return peer_program_refuses(schedules);
  return transport == PeerTransport::fenced ? "hand-tuned kernels have no fenced form" : "";
}

PeerCase::PeerCase(const CudaRanks& ranks, PeerExchange& exchange, std::span<const Schedule> schedules,
                   PeerWire wire, PeerTransport transport)
    : exchange_(exchange), schedule_(schedules[ranks.rank()]), memory_(schedule_), wire_(wire) {
  native_ = only_peer_native(schedule_);
  if (native_ == nullptr)
    make_kernel(ranks, schedules, transport);
  else
    make_native(schedules);
}

void PeerCase::make_kernel(const CudaRanks& ranks, std::span<const Schedule> schedules,
                           PeerTransport transport) {
  const PeerProgramOptions options{packet_elements(wire_), transport == PeerTransport::packets};
  const PeerProgram program = compile_peer_program(schedules, ranks.rank(), options);
  const unsigned ctas = multiprocessors();
  std::int64_t width = 0;
  for (std::int64_t packets : ranks.gather(program.width())) width = std::max(width, packets);
  const PeerLaunch launch{wire_, transport, peer_threads(width, ctas)};
  exchange_.reset(program.inbox_packets, program.messages, ctas);
  kernel_ = std::make_unique<PeerKernel>(program, memory_, exchange_.route(), exchange_.heap().all(),
                                         exchange_.layout(), launch);
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

void PeerCase::enqueue(cudaStream_t stream) const {
  if (kernel_) return kernel_->enqueue(stream);
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
