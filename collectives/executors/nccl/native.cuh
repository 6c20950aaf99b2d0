// SPDX-License-Identifier: Apache-2.0
// Natives of the `nccl` executor: library calls that stand in for a schedule.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <functional>
#include <string>

#include "collectives/executors/cuda/kernel.cuh"

namespace baton {

/// What a native gets. It enqueues into `stream` and returns; it may be captured into a graph.
struct NcclCall {
  /// All ranks, by home rank.
  ncclComm_t comm;
  cudaStream_t stream;
  /// This rank's place in scan order, and how many there are.
  int place = 0;
  int ranks = 1;
  bool reversed = false;
  int blocks = 1;
  const DeviceOperands& operands;

  /// The home rank of a place in scan order.
  int home(int at) const { return reversed ? ranks - 1 - at : at; }
};

/// Where a native needs its buffers.
enum class NcclMemory {
  /// Anywhere.
  plain,
  /// In a symmetric window.
  window,
  /// In a symmetric window of a communicator that leaves collectives to the copy engines.
  copy_engine_window
};

struct NcclNative {
  std::function<void(const NcclCall&)> body;
  NcclMemory memory = NcclMemory::plain;
};

/// Adds a native to the registry, before `main`.
struct RegisteredNcclNative {
  RegisteredNcclNative(std::string name, NcclNative native);
};

/// The native called `name`, or a null pointer.
const NcclNative* find_nccl_native(const std::string& name);

}  // namespace baton
