// SPDX-License-Identifier: Apache-2.0
// The symmetric heap: one allocation a process that all ranks of the host read and write, NCCL's window where that works,
// CUDA's inter-process handles where it does not.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "collectives/executors/cuda/nccl_library.cuh"
#include "collectives/executors/cuda/ranks.cuh"
#include "collectives/executors/cuda/shared_buffer.cuh"
#include "collectives/executors/cuda/window.cuh"

namespace baton {

class PeerHeap {
 public:
  /// Empty. Needs that lacks_peer_access gave no reason. `ranks` must outlive it.
  explicit PeerHeap(const CudaRanks& ranks) : ranks_(ranks) {}
  ~PeerHeap();
  PeerHeap(const PeerHeap&) = delete;
  PeerHeap& operator=(const PeerHeap&) = delete;

  /// Makes it at least so large; what it held is lost when it grows. The first call chooses how memory is shared: a
  /// kernel on every rank writes to every rank, and all look at what came. Collective. Throws SystemError if nothing
  /// works.
  void reserve(std::size_t bytes);

  std::size_t bytes() const { return bytes_; }
  /// The memory of every rank as this GPU reaches it, by rank; on the host, and in this GPU's memory.
  const std::vector<std::byte*>& all() const { return all_; }
  std::byte* const* on_device() const { return on_device_; }
  std::byte* own() const { return all_[ranks_.rank()]; }

  /// How memory is shared, and why not otherwise, such as "NCCL window" or "cudaIpc (built with NCCL ...)".
  std::string description() const;

 private:
  void release();
  void share_by_window(std::size_t bytes);
  void share_by_handles(std::size_t bytes);
  std::string self_test();

  const CudaRanks& ranks_;
  std::size_t bytes_ = 0;
  std::string lacks_window_;
  std::unique_ptr<NcclComm> comm_;
  std::unique_ptr<NcclWindow> window_;
  std::unique_ptr<SharedBuffer> shared_;
  std::vector<std::byte*> all_;
  std::byte** on_device_ = nullptr;
};

}  // namespace baton
