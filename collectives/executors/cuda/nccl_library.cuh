// SPDX-License-Identifier: Apache-2.0
// NCCL's return codes as exceptions, its version, communicators, and memory that its ranks share.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "collectives/executors/cuda/ranks.cuh"
#include "collectives/schedule/errors.hpp"

namespace baton {

/// Throws SystemError with NCCL's own text and the caller's line unless `code` is ncclSuccess.
void nccl(ncclResult_t code, std::source_location where = std::source_location::current());

/// The version of the library that runs, such as "2.28.9".
std::string nccl_version();

/// Refuses windows and the device interface unless the library that runs has the version of the
/// header that this was compiled with: NCCL promises neither across versions.
Refusal lacks_matching_nccl();

/// Device memory that NCCL can register with its other ranks, by itself in a recorded graph, or as
/// a window. Allocating it is slow.
class NcclBytes {
 public:
  /// Throws SystemError if there is not enough memory.
  explicit NcclBytes(std::size_t bytes);
  /// Leaves the memory to the end of the process while an exception propagates.
  ~NcclBytes();
  NcclBytes(const NcclBytes&) = delete;
  NcclBytes& operator=(const NcclBytes&) = delete;

  std::byte* get() const { return memory_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  std::byte* memory_ = nullptr;
};

/// A communicator of all ranks.
class NcclComm {
 public:
  /// With `cta_policy` NCCL_CTA_POLICY_ZERO, collectives on windows run on the copy engines. NVLink
  /// multicast is off unless ExecutorChoices allow it. Collective, after take_gpu. Throws
  /// SystemError, on all ranks if on one.
  explicit NcclComm(const CudaRanks& ranks, int cta_policy = NCCL_CTA_POLICY_DEFAULT);
  /// Leaves the communicator to the end of the process while an exception is thrown.
  ~NcclComm();
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  ncclComm_t get() const { return comm_; }

 private:
  ncclComm_t comm_ = nullptr;
};

/// Equally large allocations, one a rank, registered with one communicator as a symmetric window:
/// NCCL's collectives may then reach into the memory of all ranks, and so may our kernels.
class NcclWindow {
 public:
  /// Allocates and registers. Collective; needs that lacks_matching_nccl refused nothing. Throws
  /// SystemError on all ranks if NCCL fails on one, and then keeps no memory that NCCL does not
  /// know. `ranks` and `comm` must outlive it.
  NcclWindow(const CudaRanks& ranks, const NcclComm& comm, std::size_t bytes);
  /// Frees the window. Collective, except while an exception propagates.
  ~NcclWindow();
  NcclWindow(const NcclWindow&) = delete;
  NcclWindow& operator=(const NcclWindow&) = delete;

  std::byte* own() const { return memory_->get(); }
  std::size_t bytes() const { return memory_->bytes(); }

  /// The addresses of all ranks' memory on this GPU, by rank: from NCCL's host function, or from a
  /// kernel where it has none. Collective. Throws SystemError if NCCL has no addresses, which shows
  /// that the registration is not symmetric.
  std::vector<std::byte*> pointers() const;

  /// Writes a word into every rank's memory through `pointers` and looks for those of the others.
  /// Returns the reason of a failure, the same on all ranks, or an empty string. Overwrites the
  /// first words of the window. Collective.
  std::string self_test() const;

 private:
  std::vector<std::byte*> pointers_by_kernel() const;

  const CudaRanks& ranks_;
  const NcclComm& comm_;
  std::unique_ptr<NcclBytes> memory_;
  ncclWindow_t window_ = nullptr;
};

}  // namespace baton
