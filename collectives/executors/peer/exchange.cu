// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <new>
#include <sstream>

#include "collectives/executors/agreement.hpp"
#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/peer/device/gpu.cuh"
#include "collectives/executors/peer/exchange.cuh"
#include "collectives/schedule/check.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

/// The test packet from rank `from` to rank `to`.
__host__ __device__ Packet pattern(int from, int to) {
  const auto a = static_cast<unsigned>(from), b = static_cast<unsigned>(to);
  return {0xba70u + a, 0x5ca1u + b, a * 0x9e3779b9u, b * 0x85ebca6bu};
}

__global__ void leave_patterns_kernel(std::byte* const* heaps, int rank, int ranks) {
  const int to = static_cast<int>(threadIdx.x);
  if (to < ranks) Gpu::store_packet(heaps[to] + rank * packet_bytes, pattern(rank, to));
}

constexpr unsigned most_ctas = 1024;

/// Counters in this GPU's memory.
struct Counters {
  unsigned rounds[most_ctas];
  unsigned gave_up;
  unsigned long long arrivals;
};

__global__ void empty_slots_kernel(Packet* slots, std::size_t count) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride)
    slots[i] = {empty_word, empty_word, empty_word, empty_word};
}

const char* missing_thing(PeerFault::Kind kind) {
  switch (kind) {
    case PeerFault::Kind::packet: return "packet";
    case PeerFault::Kind::room: return "room in its inbox";
    case PeerFault::Kind::barrier: return "its own blocks at a barrier";
    case PeerFault::Kind::none: break;
  }
  return "";
}

}  // namespace

PeerHeap::~PeerHeap() { release(); }

void PeerHeap::release() {
  window_.reset();
  shared_.reset();
  cudaFree(on_device_);
  on_device_ = nullptr;
  all_.clear();
  bytes_ = 0;
}

void PeerHeap::reserve(std::size_t bytes) {
  if (bytes <= bytes_) return;
  release();
  const std::size_t size = allocated_heap(bytes);
  if (executor_choices().share_gpus()) lacks_window_ = "NCCL takes one rank a GPU";
  if (lacks_window_.empty()) lacks_window_ = ranks_.first(lacks_matching_nccl().reason());
  if (lacks_window_.empty()) share_by_window(size);
  if (!lacks_window_.empty()) share_by_handles(size);
  bytes_ = size;
}

std::string PeerHeap::description() const {
  if (window_) return "NCCL window";
  return std::string("cudaIpc, for ").append(lacks_window_);
}

void PeerHeap::share_by_window(std::size_t bytes) {
  try {
    if (!comm_) comm_ = std::make_unique<NcclComm>(ranks_);
    window_ = std::make_unique<NcclWindow>(ranks_, *comm_, bytes);
  } catch (const SystemError& error) {
    lacks_window_ = error.what();  // on all ranks
  }
  if (lacks_window_.empty()) lacks_window_ = failure_of(ranks_, [&] { all_ = window_->pointers(); });
  if (lacks_window_.empty()) lacks_window_ = self_test();
  if (!lacks_window_.empty()) release();
}

void PeerHeap::share_by_handles(std::size_t bytes) {
  shared_ = std::make_unique<SharedBuffer>(ranks_, bytes);
  for (int rank = 0; rank < ranks_.size(); ++rank) all_.push_back(shared_->of(rank));
  const std::string wrong = self_test();
  if (!wrong.empty()) throw SystemError(wrong);
}

/// Tests that a kernel on every rank reaches every rank, and makes the pointers known to the
/// device. Returns the reason of a failure, or an empty string.
std::string PeerHeap::self_test() {
  const std::size_t bytes = all_.size() * sizeof all_[0];
  cuda(cudaMalloc(&on_device_, bytes));
  cuda(cudaMemcpy(on_device_, all_.data(), bytes, cudaMemcpyHostToDevice));
  leave_patterns_kernel<<<1, (ranks_.size() + 31) / 32 * 32>>>(on_device_, ranks_.rank(), ranks_.size());
  cuda_launched();
  cuda(cudaDeviceSynchronize());
  ranks_.barrier();
  std::vector<Packet> arrived(all_.size());
  cuda(cudaMemcpy(arrived.data(), own(), arrived.size() * sizeof arrived[0], cudaMemcpyDeviceToHost));
  std::string wrong;
  for (int from = 0; from < ranks_.size(); ++from) {
    const Packet want = pattern(from, ranks_.rank()), got = arrived[from];
    if (want.x != got.x || want.y != got.y || want.z != got.z || want.w != got.w)
      wrong = "a packet of rank " + std::to_string(from) + " did not arrive in the memory of rank " +
              std::to_string(ranks_.rank());
  }
  return ranks_.first(wrong);
}

PeerExchange::PeerExchange(const CudaRanks& ranks, double limit_seconds) : ranks_(ranks), heap_(ranks) {
  Counters* counters = nullptr;
  void* fault = nullptr;
  cuda(cudaMalloc(&counters, sizeof(Counters)));
  cuda(cudaMallocHost(&fault, sizeof(PeerFault)));
  context_.rank = ranks.rank();
  context_.ranks = ranks.size();
  context_.rounds = counters->rounds;
  context_.gave_up = &counters->gave_up;
  context_.arrivals = &counters->arrivals;
  context_.fault = new (fault) PeerFault;
  context_.limit = static_cast<std::uint64_t>(limit_seconds * 1e9);
}

PeerExchange::~PeerExchange() {
  cudaFree(context_.rounds);
  cudaFreeHost(context_.fault);
}

void PeerExchange::reset(std::int64_t packets, unsigned ctas) {
  context_.ctas = ctas;
  context_.generation_bytes = generation_bytes(packets);
  const std::size_t inbox = inbox_offset(context_), bytes = heap_bytes(context_);
  cuda(cudaDeviceSynchronize());
  ranks_.barrier();  // no rank sends any more
  heap_.reserve(bytes);
  context_.heap = heap_.own();
  context_.heaps = heap_.on_device();
  cuda(cudaMemset(heap_.own(), 0, inbox));
  cuda(cudaMemset(context_.rounds, 0, sizeof(Counters)));
  empty_slots_kernel<<<512, 256>>>(reinterpret_cast<Packet*>(heap_.own() + inbox),
                                   (bytes - inbox) / sizeof(Packet));
  cuda_launched();
  *context_.fault = {};
  cuda(cudaDeviceSynchronize());
  ranks_.barrier();
}

int PeerExchange::faulty_step(const Schedule& schedule) const {
  const PeerFault& fault = *context_.fault;
  const bool has_step = fault.kind != PeerFault::Kind::none && fault.step < std::ssize(schedule.steps());
  return has_step ? fault.step : -1;
}

std::string PeerExchange::fault(const Schedule& schedule) const {
  const PeerFault& fault = *context_.fault;
  if (fault.kind == PeerFault::Kind::none) return {};
  const int step = faulty_step(schedule);
  std::ostringstream text;
  text << "rank " << context_.rank << " timed out after " << context_.limit / 1'000'000
       << " ms waiting for rank " << fault.peer << ": ";
  if (step >= 0) text << step_name(schedule.steps()[step], step) << ", ";
  text << missing_thing(fault.kind);
  if (fault.kind == PeerFault::Kind::packet) text << ' ' << fault.block;
  text << ", CTA " << fault.cta << ", round " << fault.round << ", of which rank " << fault.peer
       << " has started " << fault.peer_round;
  return text.str();
}

}  // namespace baton
