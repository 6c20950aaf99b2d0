// SPDX-License-Identifier: Apache-2.0
// Laying out the heap, and telling faults.
#include <new>
#include <sstream>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/peer/exchange.cuh"
#include "collectives/schedule/check.hpp"

namespace baton {
namespace {

constexpr unsigned most_ctas = 1024;
constexpr std::size_t line = 256;

/// Counters in this GPU's memory.
struct Counters {
  unsigned rounds[most_ctas];
  unsigned gave_up;
  unsigned long long arrivals;
};

__global__ void empty_kernel(uint4* slots, std::size_t count) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride)
    slots[i] = {nothing, nothing, nothing, nothing};
}

std::size_t rounded(std::size_t bytes) { return (bytes + line - 1) / line * line; }

const char* what_was_missing(PeerFault::Kind kind) {
  switch (kind) {
    case PeerFault::Kind::packet: return "packet";
    case PeerFault::Kind::flag: return "the flag of block";
    case PeerFault::Kind::room: return "room in its inbox";
    case PeerFault::Kind::barrier: return "its own blocks at a barrier";
    case PeerFault::Kind::none: break;
  }
  return "";
}

}  // namespace

PeerExchange::PeerExchange(const CudaRanks& ranks, double limit_seconds) : ranks_(ranks), heap_(ranks) {
  Counters* counters = nullptr;
  void* fault = nullptr;
  cuda(cudaMalloc(&counters, sizeof(Counters)));
  cuda(cudaMallocHost(&fault, sizeof(PeerFault)));
  route_.rank = ranks.rank();
  route_.ranks = ranks.size();
  route_.rounds = counters->rounds;
  route_.gave_up = &counters->gave_up;
  route_.arrivals = &counters->arrivals;
  route_.fault = new (fault) PeerFault;
  route_.limit = static_cast<std::uint64_t>(limit_seconds * 1e9);
}

PeerExchange::~PeerExchange() {
  cudaFree(route_.rounds);
  cudaFreeHost(route_.fault);
}

void PeerExchange::reset(std::int64_t packets, int messages, unsigned ctas) {
  layout_.message_flags = rounded(std::size_t(ranks_.size()) * flag_words * sizeof(unsigned));
  layout_.inbox = layout_.message_flags + rounded(std::size_t(messages) * ctas * sizeof(unsigned));
  route_.generation_bytes = rounded(std::size_t(packets) * packet_bytes);
  layout_.bytes = layout_.inbox + generations * route_.generation_bytes;
  cuda(cudaDeviceSynchronize());
  ranks_.barrier();  // nobody sends any more
  heap_.reserve(layout_.bytes);
  route_.ctas = ctas;
  route_.heap = heap_.own();
  route_.heaps = heap_.on_device();
  cuda(cudaMemset(heap_.own(), 0, layout_.inbox));
  cuda(cudaMemset(route_.rounds, 0, sizeof(Counters)));
  empty_kernel<<<512, 256>>>(reinterpret_cast<uint4*>(heap_.own() + layout_.inbox),
                             (layout_.bytes - layout_.inbox) / sizeof(uint4));
  cuda_launched();
  *route_.fault = {};
  cuda(cudaDeviceSynchronize());
  ranks_.barrier();
}

std::string PeerExchange::fault(const Schedule& schedule) const {
  const PeerFault& fault = *route_.fault;
  if (fault.kind == PeerFault::Kind::none) return {};
  const bool has_step = fault.step >= 0 && fault.step < static_cast<int>(schedule.steps().size());
  const bool has_block = fault.kind == PeerFault::Kind::packet || fault.kind == PeerFault::Kind::flag;
  std::ostringstream text;
  text << "rank " << route_.rank << " waited " << route_.limit / 1'000'000 << " ms in vain for rank "
       << fault.peer << ": ";
  if (has_step) text << step_name(schedule.steps()[fault.step], fault.step) << ", ";
  text << what_was_missing(fault.kind);
  if (has_block) text << ' ' << fault.block;
  text << ", CTA " << fault.cta << ", round " << fault.round << ", of which rank " << fault.peer
       << " has started " << fault.peer_round;
  return text.str();
}

}  // namespace baton
