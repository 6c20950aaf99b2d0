// SPDX-License-Identifier: Apache-2.0
// Windows and their pointers.
#include <cuda_runtime.h>
#include <nccl_device.h>

#include <exception>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/window.cuh"
#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

/// NCCL's host functions tell no pointers before 2.29; on the device it is arithmetic on the window's handle.
__global__ void find_pointers_kernel(ncclWindow_t window, int ranks, std::byte** pointers) {
  for (int rank = 0; rank < ranks; ++rank)
    pointers[rank] = static_cast<std::byte*>(ncclGetLsaPointer(window, 0, rank));
}

ncclDevCommRequirements no_requirements() {
#ifdef NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER
  return NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
#else
  return {};  // its multicast is off
#endif
}

unsigned word_of(int rank) { return 0xba70u + static_cast<unsigned>(rank); }

}  // namespace

NcclWindow::NcclWindow(const CudaRanks& ranks, const NcclComm& comm, std::size_t bytes)
    : ranks_(ranks), comm_(comm), memory_(bytes) {
  cuda(cudaMemset(own(), 0, bytes));
  cuda(cudaDeviceSynchronize());
  nccl(ncclCommWindowRegister(comm.get(), own(), bytes, &window_, NCCL_WIN_COLL_SYMMETRIC));
  ranks.barrier();
}

NcclWindow::~NcclWindow() {
  if (std::uncaught_exceptions() > 0) return;  // the communicator is aborted; the process ends
  cudaDeviceSynchronize();
  ranks_.barrier();
  ncclCommWindowDeregister(comm_.get(), window_);
  ranks_.barrier();
}

std::vector<std::byte*> NcclWindow::pointers() const {
  ncclDevCommRequirements requirements = no_requirements();
  ncclDevComm device{};
  nccl(ncclDevCommCreate(comm_.get(), &requirements, &device));
  const bool reaches_all = device.lsaSize == ranks_.size();
  std::vector<std::byte*> found(ranks_.size());
  if (reaches_all) {
    std::byte** on_device = nullptr;
    cuda(cudaMalloc(&on_device, found.size() * sizeof found[0]));
    find_pointers_kernel<<<1, 1>>>(window_, ranks_.size(), on_device);
    cuda_launched();
    cuda(cudaMemcpy(found.data(), on_device, found.size() * sizeof found[0], cudaMemcpyDeviceToHost));
    cuda(cudaFree(on_device));
  }
  nccl(ncclDevCommDestroy(comm_.get(), &device));
  if (!reaches_all) throw SystemError("NCCL's windows do not reach all ranks");
  return found;
}

std::string NcclWindow::self_test() const {
  const auto peers = pointers();
  const unsigned mine = word_of(ranks_.rank());
  ranks_.barrier();
  for (std::byte* peer : peers)
    cuda(cudaMemcpy(peer + ranks_.rank() * sizeof mine, &mine, sizeof mine, cudaMemcpyHostToDevice));
  cuda(cudaDeviceSynchronize());
  ranks_.barrier();
  std::vector<unsigned> words(ranks_.size());
  cuda(cudaMemcpy(words.data(), own(), words.size() * sizeof words[0], cudaMemcpyDeviceToHost));
  std::string wrong;
  for (int rank = 0; rank < ranks_.size(); ++rank)
    if (words[rank] != word_of(rank))
      wrong = "what rank " + std::to_string(rank) + " wrote into the window of rank " +
              std::to_string(ranks_.rank()) + " did not arrive";
  return ranks_.first(wrong);
}

}  // namespace baton
