// SPDX-License-Identifier: Apache-2.0
// Device memory: one rank's buffers and their checksums, and allocations that all ranks of a host
// share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "collectives/executors/cuda/kernel.cuh"
#include "collectives/executors/cuda/ranks.cuh"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// One allocation of device memory.
class DeviceBytes {
 public:
  /// Throws SystemError if there is not enough memory.
  explicit DeviceBytes(std::size_t bytes);

  std::byte* get() const { return memory_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

/// The buffers of one schedule, one after the other in one arena, each 256-byte aligned, with the
/// values that they start with.
class DeviceMemory {
 public:
  /// Bytes of the arena that `schedule` needs.
  static std::size_t bytes(const Schedule& schedule);

  /// Allocates memory of its own. Throws SystemError if there is not enough.
  explicit DeviceMemory(const Schedule& schedule);
  /// Places the buffers at `arena`: `bytes(schedule)` bytes, 256-byte aligned, which must outlive
  /// it.
  DeviceMemory(const Schedule& schedule, void* arena);

  /// Size of the arena in bytes.
  std::size_t size() const { return bytes_; }
  /// The address of `slice`, whatever its dtype; a null pointer if it is empty.
  float* at(const Slice& slice) const;
  /// The operands of `step`.
  DeviceOperands operands(const Step& step) const;

  /// Sets all buffers to the values that they start with, and waits until this is done.
  void clear();
  /// Copies `from` into a slice and waits. Values are rounded if the slice is bf16.
  void write(const Slice& into, std::span<const float> from);
  /// Copies a slice to `into` and waits. Values of bf16 are widened to f32.
  void read(std::span<float> into, const Slice& from) const;

 private:
  std::unique_ptr<DeviceBytes> own_;  // empty where the arena belongs to others
  std::byte* arena_;
  std::size_t bytes_;
  std::vector<std::size_t> offsets_;             // of each buffer
  std::vector<std::pair<Slice, float>> starts_;  // buffers that do not start as zeros
};

/// Device memory for the checksums of slices on the current GPU.
class ChecksumDevice {
 public:
  ChecksumDevice() : sum_(sizeof(std::uint64_t)) {}

  /// The checksum of `slices` of `memory`, in bits of their dtypes. Waits for `stream`. Throws
  /// SystemError if CUDA fails.
  std::uint64_t of(const DeviceMemory& memory, std::span<const Slice> slices, cudaStream_t stream) const;

 private:
  DeviceBytes sum_;
};

/// Overwrites the first of every `stride` elements of `into` by `value`, and waits. Throws
/// SystemError if CUDA fails.
void scatter_on_device(const DeviceMemory& memory, const Slice& into, std::int64_t stride, float value,
                       cudaStream_t stream);

/// One allocation a rank, equally large, all zeros at first. The other ranks of the host open it
/// through CUDA's inter-process handles, and all read and write it.
class SharedBuffer {
 public:
  /// Allocates and shares `bytes` bytes on each of `ranks`, which must outlive the buffer.
  /// Collective; needs that lacks_peer_access refused nothing. Throws SystemError if CUDA fails.
  SharedBuffer(const CudaRanks& ranks, std::size_t bytes);
  /// Frees the memory. Collective, except while an exception propagates.
  ~SharedBuffer();
  SharedBuffer(const SharedBuffer&) = delete;
  SharedBuffer& operator=(const SharedBuffer&) = delete;

  /// The memory of `rank`, as this process and its GPU reach it.
  std::byte* of(int rank) const { return pointers_[rank]; }
  std::byte* own() const { return pointers_[ranks_.rank()]; }
  /// The addresses that `of` returns, by rank, as an array in this GPU's memory.
  std::byte* const* on_device() const { return on_device_; }

 private:
  const CudaRanks& ranks_;
  std::vector<std::byte*> pointers_;
  std::byte** on_device_ = nullptr;
};

}  // namespace baton
