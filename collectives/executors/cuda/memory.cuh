// SPDX-License-Identifier: Apache-2.0
// One rank's buffers in device memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "collectives/executors/cuda/kernel.cuh"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// Some device memory.
class DeviceBytes {
 public:
  /// Throws SystemError if it is not to be had.
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

/// The buffers of one schedule, one after the other in one arena, each 256-byte aligned, all zeros at first.
class DeviceMemory {
 public:
  /// Bytes of the arena that `schedule` needs.
  static std::size_t bytes(const Schedule& schedule);

  /// In memory of its own. Throws SystemError if it is not to be had.
  explicit DeviceMemory(const Schedule& schedule);
  /// In `bytes(schedule)` bytes at `arena`, 256-byte aligned, which must outlive it.
  DeviceMemory(const Schedule& schedule, void* arena);

  /// Bytes of its arena.
  std::size_t size() const { return bytes_; }
  /// Where `slice` lies, whatever its elements are; a null pointer where it is empty.
  float* at(const Slice& slice) const;
  /// What `step` writes and reads.
  DeviceOperands operands(const Step& step) const;

  /// These wait until done. Values of bf16 slices are rounded to it, or widened.
  void clear();
  void write(const Slice& into, std::span<const float> from);
  void read(std::span<float> into, const Slice& from) const;

 private:
  std::unique_ptr<DeviceBytes> own_;  // empty where the arena is somebody else's
  std::byte* arena_;
  std::size_t bytes_;
  std::vector<std::size_t> offsets_;  // of each buffer
};

}  // namespace baton
