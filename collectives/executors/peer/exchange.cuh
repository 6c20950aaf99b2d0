// SPDX-License-Identifier: Apache-2.0
// The memory through which ranks exchange packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/executors/cuda/memory.cuh"
#include "collectives/executors/cuda/nccl_library.cuh"
#include "collectives/executors/cuda/ranks.cuh"
#include "collectives/executors/peer/device/instruction.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// The symmetric heap: one allocation a process that all ranks of the host read and write, in
/// NCCL's window where that works, else through CUDA's inter-process handles.
class PeerHeap {
 public:
  /// Makes an empty heap. lacks_peer_access must have refused nothing, and `ranks` must outlive it.
  explicit PeerHeap(const CudaRanks& ranks) : ranks_(ranks) {}
  ~PeerHeap();
  PeerHeap(const PeerHeap&) = delete;
  PeerHeap& operator=(const PeerHeap&) = delete;

  /// Makes the heap at least `bytes` bytes large; its contents are lost when it grows. The first
  /// call chooses how memory is shared, and tests that a kernel on every rank reaches every rank.
  /// Collective. Throws SystemError if nothing works.
  void reserve(std::size_t bytes);

  std::size_t bytes() const { return bytes_; }
  /// The addresses of all ranks' heaps on this GPU, by rank.
  const std::vector<std::byte*>& all() const { return all_; }
  /// The addresses of all ranks' heaps, by rank, as an array in this GPU's memory.
  std::byte* const* on_device() const { return on_device_; }
  std::byte* own() const { return all_[ranks_.rank()]; }

  /// How memory is shared, and the reason against NCCL's window, such as "cudaIpc, for built with
  /// NCCL ...".
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

/// State that the rounds of a prepared case share: inboxes and flags in the heap, counters in this
/// GPU's memory, and the record of a thread that gave up waiting.
class PeerExchange {
 public:
  /// `ranks` must outlive it. A thread gives up after `limit_seconds` of waiting. Collective.
  explicit PeerExchange(const CudaRanks& ranks, double limit_seconds = 5);
  ~PeerExchange();
  PeerExchange(const PeerExchange&) = delete;
  PeerExchange& operator=(const PeerExchange&) = delete;

  /// Empties the inboxes of all ranks, makes them large enough for `packets` packets, and starts
  /// counting rounds of `ctas` blocks anew. Arguments are equal on all ranks, none of which has a
  /// round under way. Collective. Throws SystemError.
  void reset(std::int64_t packets, unsigned ctas);

  const PeerContext& context() const { return context_; }
  const PeerHeap& heap() const { return heap_; }

  /// The first wait of this rank that timed out, in terms of its schedule, or an empty string. To
  /// be called when no round is under way.
  std::string fault(const Schedule& schedule) const;
  /// The step of that wait; -1 if there is none, or if it is of no step.
  int faulty_step(const Schedule& schedule) const;

 private:
  const CudaRanks& ranks_;
  PeerHeap heap_;
  PeerContext context_;
};

}  // namespace baton
