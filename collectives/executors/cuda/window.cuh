// SPDX-License-Identifier: Apache-2.0
// Device memory that NCCL knows as a symmetric window: its collectives may then reach into the memory of all ranks, and
// so may our kernels.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "collectives/executors/cuda/nccl_library.cuh"

namespace baton {

/// An equally large allocation a rank, registered with one communicator.
class NcclWindow {
 public:
  /// Allocates and registers. Collective; needs that lacks_matching_nccl gave no reason. Throws SystemError if NCCL
  /// fails. `ranks` and `comm` must outlive it.
  NcclWindow(const CudaRanks& ranks, const NcclComm& comm, std::size_t bytes);
  /// Collective, except while an exception flies.
  ~NcclWindow();
  NcclWindow(const NcclWindow&) = delete;
  NcclWindow& operator=(const NcclWindow&) = delete;

  std::byte* own() const { return memory_.get(); }
  std::size_t bytes() const { return memory_.bytes(); }

  /// Where this GPU finds the memory of each rank, by rank. Collective. Throws SystemError if NCCL has no such pointers,
  /// which is how a registration that is not symmetric shows.
  std::vector<std::byte*> pointers() const;

  /// Writes a word into every rank's memory through `pointers` and looks for those of the others: why that failed, or an
  /// empty string; the same on all ranks. Overwrites the first words of the window. Collective.
  std::string self_test() const;

 private:
  const CudaRanks& ranks_;
  const NcclComm& comm_;
  NcclBytes memory_;
  ncclWindow_t window_ = nullptr;
};

}  // namespace baton
