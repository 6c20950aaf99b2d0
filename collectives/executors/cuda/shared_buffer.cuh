// SPDX-License-Identifier: Apache-2.0
// Device memory that all ranks of a host read and write: an allocation a rank, opened by the others through CUDA's
// inter-process handles.
#pragma once

#include <cstddef>
#include <vector>

#include "collectives/executors/cuda/ranks.cuh"

namespace baton {

/// One allocation a rank, equally large, all zeros at first.
class SharedBuffer {
 public:
  /// Collective; needs that lacks_peer_access gave no reason. Throws SystemError if CUDA fails. `ranks` must outlive it.
  SharedBuffer(const CudaRanks& ranks, std::size_t bytes);
  /// Collective, except while an exception flies.
  ~SharedBuffer();
  SharedBuffer(const SharedBuffer&) = delete;
  SharedBuffer& operator=(const SharedBuffer&) = delete;

  /// The memory of `rank`, as this process and its GPU reach it.
  std::byte* of(int rank) const { return pointers_[rank]; }
  std::byte* own() const { return pointers_[ranks_.rank()]; }
  /// The same pointers, by rank, in this GPU's memory.
  std::byte* const* on_device() const { return on_device_; }

 private:
  const CudaRanks& ranks_;
  std::vector<std::byte*> pointers_;
  std::byte** on_device_ = nullptr;
};

}  // namespace baton
