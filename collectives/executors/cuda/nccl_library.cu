// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <nccl_device.h>

#include <cstdlib>
#include <exception>

#include "collectives/executors/agreement.hpp"
#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/nccl_library.cuh"
#include "collectives/executors/executor.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

std::string nccl_version_text(int code) {
  return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." +
         std::to_string(code % 100);
}

int library_version() {
  int code = 0;
  nccl(ncclGetVersion(&code));
  return code;
}

/// ncclGetPeerDevicePointer, which NCCL has from 2.29 on: the address of a rank's part of a window
/// on this GPU, null if there is none. Older headers do not declare it, so it is looked up.
using PeerPointer = ncclResult_t (*)(ncclWindow_t window, std::size_t offset, int rank, void** pointer);

PeerPointer peer_pointer() {
  return reinterpret_cast<PeerPointer>(dlsym(RTLD_DEFAULT, "ncclGetPeerDevicePointer"));
}

/// Before 2.29 NCCL's host functions return no pointers; on the device they follow from the
/// window's handle.
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

constexpr const char* unreachable = "NCCL's windows do not reach all ranks";

unsigned word_of(int rank) { return 0xba70u + static_cast<unsigned>(rank); }

}  // namespace

void nccl(ncclResult_t code, std::source_location where) {
  if (code == ncclSuccess) return;
  std::string text = ncclGetErrorString(code);
  const char* last = ncclGetLastError(nullptr);
  if (last != nullptr && *last != '\0') text += std::string(": ") + last;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  throw SystemError("NCCL error " + std::to_string(code) + ": " + text + " (" + where.file_name() + ":" +
                    std::to_string(where.line()) + ")");
}

std::string nccl_version() { return nccl_version_text(library_version()); }

Refusal lacks_matching_nccl() {
  if (library_version() == NCCL_VERSION_CODE) return {};
  return "built with NCCL " + nccl_version_text(NCCL_VERSION_CODE) + " but running with " + nccl_version() +
         ", between which windows may differ";
}

NcclBytes::NcclBytes(std::size_t bytes) : bytes_(bytes) {
  void* memory = nullptr;
  nccl(ncclMemAlloc(&memory, bytes));
  memory_ = static_cast<std::byte*>(memory);
}

NcclBytes::~NcclBytes() {
  if (std::uncaught_exceptions() == 0) ncclMemFree(memory_);
}

NcclComm::NcclComm(const CudaRanks& ranks, int cta_policy) {
  // NCCL reads it once, at its first communicator.
  if (!executor_choices().multicast) setenv("NCCL_NVLS_ENABLE", "0", 1);
  ncclUniqueId id{};
  std::string failed = failure_of(ranks, [&] {
    if (ranks.rank() == 0) nccl(ncclGetUniqueId(&id));
  });
  if (!failed.empty()) throw SystemError(failed);
  ranks.broadcast(&id, sizeof id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  if (cta_policy != NCCL_CTA_POLICY_DEFAULT) config.CTAPolicy = cta_policy;
  failed = failure_of(ranks,
                      [&] { nccl(ncclCommInitRankConfig(&comm_, ranks.size(), id, ranks.rank(), &config)); });
  if (!failed.empty()) throw SystemError(failed);
}

NcclComm::~NcclComm() {
  // Destruction waits for the other ranks, which may never come when one fails. Aborting waits too,
  // for recordings that hold the communicator's work, and those of a GPU that met an error stay.
  if (std::uncaught_exceptions() == 0) ncclCommDestroy(comm_);
}

NcclWindow::NcclWindow(const CudaRanks& ranks, const NcclComm& comm, std::size_t bytes)
    : ranks_(ranks), comm_(comm) {
  std::string failed = failure_of(ranks, [&] {
    memory_ = std::make_unique<NcclBytes>(bytes);
    cuda(cudaMemset(own(), 0, bytes));
    cuda(cudaDeviceSynchronize());
  });
  if (failed.empty())
    failed = failure_of(ranks, [&] {
      nccl(ncclCommWindowRegister(comm.get(), own(), bytes, &window_, NCCL_WIN_COLL_SYMMETRIC));
    });
  if (failed.empty()) return;
  if (window_ == nullptr) memory_.reset();  // here: while an exception propagates, memory stays
  throw SystemError(failed);
}

NcclWindow::~NcclWindow() {
  if (std::uncaught_exceptions() > 0) return;  // the communicator stays too; the process ends
  cudaDeviceSynchronize();
  ranks_.barrier();
  ncclCommWindowDeregister(comm_.get(), window_);
  ranks_.barrier();
}

std::vector<std::byte*> NcclWindow::pointers() const {
  const PeerPointer find = peer_pointer();
  if (find == nullptr) return pointers_by_kernel();
  std::vector<std::byte*> found;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    void* pointer = nullptr;
    nccl(find(window_, 0, rank, &pointer));
    if (pointer == nullptr) throw SystemError(unreachable);
    found.push_back(static_cast<std::byte*>(pointer));
  }
  return found;
}

std::vector<std::byte*> NcclWindow::pointers_by_kernel() const {
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
  if (!reaches_all) throw SystemError(unreachable);
  return found;
}

std::string NcclWindow::self_test() const {
  const unsigned mine = word_of(ranks_.rank());
  const std::string failed = failure_of(ranks_, [&] {
    for (std::byte* peer : pointers())
      cuda(cudaMemcpy(peer + ranks_.rank() * sizeof mine, &mine, sizeof mine, cudaMemcpyHostToDevice));
    cuda(cudaDeviceSynchronize());
  });
  if (!failed.empty()) return failed;
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
