// SPDX-License-Identifier: Apache-2.0
// Device memory that all calls of a process share, one after the other in a stream: what a body
// keeps between its own kernels.
//
//   grow(bytes), lacks(bytes)    when a schedule is prepared
//   get()                        while it runs, also while it is captured
//
// It only grows, and while it does nothing may run that was recorded with it.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/memory.cuh"
#include "collectives/schedule/errors.hpp"

namespace baton {

/// Throws std::logic_error if `stream`, which may be null, is captured: `what` is made when a
/// schedule is prepared.
inline void require_before_capture(cudaStream_t stream, const std::string& what) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (stream != nullptr) cuda(cudaStreamIsCapturing(stream, &status));
  if (status != cudaStreamCaptureStatusNone)
    throw std::logic_error(what + " must be made before a stream is captured");
}

class Workspace {
 public:
  /// Makes the memory at least `bytes` bytes. Throws SystemError if there is not enough memory.
  void grow(std::size_t bytes) {
    if (memory_ && memory_->bytes() >= bytes) return;
    memory_.reset();  // first: both need not fit at once
    memory_ = std::make_unique<DeviceBytes>(bytes);
  }
  /// The same, and returns the reason if there is not enough memory.
  Refusal lacks(std::size_t bytes) {
    try {
      grow(bytes);
      return {};
    } catch (const SystemError& error) {
      return error.what();
    }
  }
  std::byte* get() const { return memory_->get(); }

  static Workspace& shared() {
    static Workspace& one = *new Workspace;  // stays: the device may be gone when statics end
    return one;
  }

 private:
  std::unique_ptr<DeviceBytes> memory_;
};

}  // namespace baton
