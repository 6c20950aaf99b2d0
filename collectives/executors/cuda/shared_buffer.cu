// SPDX-License-Identifier: Apache-2.0
// Inter-process handles.
#include <exception>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/shared_buffer.cuh"

namespace baton {
namespace {

/// A handle stands for whole pages of the device: smaller allocations would share theirs with others.
constexpr std::size_t page = std::size_t{2} << 20;

}  // namespace

SharedBuffer::SharedBuffer(const CudaRanks& ranks, std::size_t bytes)
    : ranks_(ranks), pointers_(ranks.size()) {
  const std::size_t whole = (bytes + page - 1) / page * page;
  void* memory = nullptr;
  cuda(cudaMalloc(&memory, whole));
  // Before anybody else can reach it: a flag raised early must not be wiped.
  cuda(cudaMemset(memory, 0, whole));
  cuda(cudaDeviceSynchronize());
  cudaIpcMemHandle_t mine;
  cuda(cudaIpcGetMemHandle(&mine, memory));
  const auto handles = ranks.gather(mine);
  pointers_[ranks.rank()] = static_cast<std::byte*>(memory);
  for (int rank = 0; rank < ranks.size(); ++rank) {
    if (rank == ranks.rank()) continue;
    cuda(cudaIpcOpenMemHandle(&memory, handles[rank], cudaIpcMemLazyEnablePeerAccess));
    pointers_[rank] = static_cast<std::byte*>(memory);
  }
  cuda(cudaMalloc(&on_device_, pointers_.size() * sizeof pointers_[0]));
  cuda(cudaMemcpy(on_device_, pointers_.data(), pointers_.size() * sizeof pointers_[0],
                  cudaMemcpyHostToDevice));
  cuda(cudaDeviceSynchronize());
  ranks.barrier();
}

SharedBuffer::~SharedBuffer() {
  // When one rank fails, the others end with it and cannot meet here, and the device may never come to an end.
  if (std::uncaught_exceptions() > 0) return;
  cudaDeviceSynchronize();
  ranks_.barrier();  // nobody may free what another still uses
  for (int rank = 0; rank < ranks_.size(); ++rank)
    if (rank != ranks_.rank()) cudaIpcCloseMemHandle(pointers_[rank]);
  ranks_.barrier();
  cudaFree(own());
  cudaFree(on_device_);
}

}  // namespace baton
