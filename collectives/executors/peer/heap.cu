// SPDX-License-Identifier: Apache-2.0
// Choice and test of shared memory.
#include <algorithm>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/peer/device/packet.cuh"
#include "collectives/executors/peer/heap.cuh"
#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

/// What rank `from` leaves with rank `to`.
__host__ __device__ uint4 pattern(int from, int to) {
  const auto a = static_cast<unsigned>(from), b = static_cast<unsigned>(to);
  return {0xba70u + a, 0x5ca1u + b, a * 0x9e3779b9u, b * 0x85ebca6bu};
}

__global__ void leave_patterns_kernel(std::byte* const* heaps, int rank, int ranks) {
  const int to = static_cast<int>(threadIdx.x);
  if (to < ranks) store_packet(heaps[to] + rank * packet_bytes, pattern(rank, to));
}

/// Rounds up so that growing case by case allocates seldom.
std::size_t roomy(std::size_t bytes) {
  std::size_t size = std::size_t{64} << 20;
  while (size < bytes) size *= 2;
  return size;
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
  const std::size_t size = roomy(bytes);
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
  std::string failed;
  try {
    if (!comm_) comm_ = std::make_unique<NcclComm>(ranks_);
    window_ = std::make_unique<NcclWindow>(ranks_, *comm_, bytes);
    all_ = window_->pointers();
  } catch (const SystemError& error) {
    failed = error.what();
  }
  lacks_window_ = ranks_.first(failed);
  if (lacks_window_.empty()) lacks_window_ = self_test();
  if (!lacks_window_.empty()) release();
}

void PeerHeap::share_by_handles(std::size_t bytes) {
  shared_ = std::make_unique<SharedBuffer>(ranks_, bytes);
  for (int rank = 0; rank < ranks_.size(); ++rank) all_.push_back(shared_->of(rank));
  const std::string wrong = self_test();
  if (!wrong.empty()) throw SystemError(wrong);
}

/// Also makes the pointers known to the device.
std::string PeerHeap::self_test() {
  const std::size_t bytes = all_.size() * sizeof all_[0];
  cuda(cudaMalloc(&on_device_, bytes));
  cuda(cudaMemcpy(on_device_, all_.data(), bytes, cudaMemcpyHostToDevice));
  leave_patterns_kernel<<<1, (ranks_.size() + 31) / 32 * 32>>>(on_device_, ranks_.rank(), ranks_.size());
  cuda_launched();
  cuda(cudaDeviceSynchronize());
  ranks_.barrier();
  std::vector<uint4> came(all_.size());
  cuda(cudaMemcpy(came.data(), own(), came.size() * sizeof came[0], cudaMemcpyDeviceToHost));
  std::string wrong;
  for (int from = 0; from < ranks_.size(); ++from) {
    const uint4 want = pattern(from, ranks_.rank()), got = came[from];
    if (want.x != got.x || want.y != got.y || want.z != got.z || want.w != got.w)
      wrong = "what rank " + std::to_string(from) + " stored into the memory of rank " +
              std::to_string(ranks_.rank()) + " did not arrive";
  }
  return ranks_.first(wrong);
}

}  // namespace baton
